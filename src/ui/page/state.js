// What the page knows, and what follows from it. Nothing here touches the document.

export const STATES = [
  { letter: "p", name: "pending", label: "pending" },
  { letter: "m", name: "migrating", label: "migrating" },
  { letter: "d", name: "migrated", label: "migrated" },
  { letter: "f", name: "failed", label: "failed" },
  { letter: "r", name: "rolledBack", label: "rolled back" },
];
export const BY_LETTER = new Map(STATES.map((state) => [state.letter, state]));
export const BY_NAME = new Map(STATES.map((state) => [state.name, state]));
export const collator = new Intl.Collator("en", { numeric: true });

export const model = {
  migrations: new Map(), // by key
  hubs: [],
  known: false, // there was a snapshot
  order: "name", // of the shown clusters
  history: new Map(), // requests per second of each hub, the last ones
  about: {},
  skew: 0, // the manager's clock minus ours
  selected: null,
  clusters: null, // of the selected migration: {key, version, names, states, order}
  hidden: new Set(), // letters of states that are filtered out
  cursor: -1, // place in the shown clusters
  token: "",
};

/** By the manager's clock. */
export const now = () => Date.now() + model.skew;

/** What a cluster's state is called: nothing is pending in a migration that has ended, and in a rollback all go back. */
export function labelOf(state, migration) {
  if (state.name === "pending" && migration?.ended) return "not started";
  if (state.name === "migrating" && migration?.kind === "rollback") return "returning";
  return state.label;
}

/** Counts of a migration, each cluster once. The status counts those rolled back among the failed ones as well. */
export function counts(migration) {
  if (migration.counts) return migration.counts;
  const c = migration.clusters;
  return { ...c, failed: Math.max(0, c.failed - c.rolledBack) };
}

/** How many clusters are on their way from a hub or to it, there or back. */
export function inFlight(hub) {
  let sum = 0;
  for (const migration of model.migrations.values()) if (!migration.ended && (migration.from === hub || migration.to === hub)) sum += counts(migration).migrating || 0;
  return sum;
}

export function timeLeft(migration) {
  if (migration.timeLeft === null || migration.timeLeft === undefined) return null;
  return Math.max(0, migration.timeLeft - (now() - migration.seen));
}

export const age = (migration) => migration.created || 0;
export const sorted = () =>
  [...model.migrations.values()].sort((a, b) => a.ended - b.ended || (a.ended ? age(b) - age(a) : 0) || collator.compare(a.key, b.key));
