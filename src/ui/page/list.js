// The tiles of totals, and the list of migrations.
import { $, element, setText } from "./dom.js";
import { count, duration } from "./format.js";
import { bar, fillBar, setBadge } from "./progress.js";
import { schedule } from "./redraw.js";
import { go } from "./selection.js";
import { shape } from "./shapes.js";
import { BY_NAME, STATES, age, counts, model, now, sorted, timeLeft } from "./state.js";

const tiles = new Map();
export function drawSummary() {
  const sum = { migrating: 0, migrated: 0, failed: 0, rolledBack: 0, pending: 0 };
  let running = 0;
  for (const migration of model.migrations.values()) {
    if (!migration.ended) ++running;
    const c = counts(migration);
    for (const name of Object.keys(sum)) if (name !== "pending" || !migration.ended) sum[name] += c[name] || 0;
  }
  document.title = (running ? count(running) + " active · " : "") + "hubferry";
  const shown = [["running", running === 1 ? "active migration" : "active migrations", running], ...STATES.map((state) => [state.name, state.label, sum[state.name]])];
  for (const [name, label, value] of shown) {
    if (!tiles.has(name)) {
      const value_node = element("b");
      const letter = BY_NAME.get(name)?.letter;
      const label_node = element("span");
      const tile = element("div", { class: "tile" }, value_node, letter ? shape(letter) : "", label_node);
      $("summary").append(tile);
      tiles.set(name, { tile, value_node, label_node });
    }
    const { tile, value_node, label_node } = tiles.get(name);
    setText(value_node, model.known ? count(value) : "–");
    setText(label_node, label);
    tile.classList.toggle("zero", !value);
  }
}

const items = new Map(); // by key
export function drawList() {
  const wanted = $("find-migration").value.trim().toLowerCase();
  const shown = sorted().filter((m) => !wanted || (m.key + " " + m.from + " " + m.to + " " + m.phase).toLowerCase().includes(wanted));
  for (const [key, item] of items)
    if (!model.migrations.has(key)) {
      item.node.remove();
      items.delete(key);
    }
  let before = null;
  const several = new Set([...model.migrations.values()].map((m) => m.ns)).size > 1;
  for (const item of items.values()) item.node.hidden = true;
  for (const migration of shown) {
    const item = items.get(migration.key) || makeItem(migration.key);
    setText(item.name, several ? migration.key : migration.name);
    setBadge(item.badge, migration);
    setText(item.hubs, migration.from + " → " + migration.to);
    setText(item.age, migration.created ? "age " + duration(now() - age(migration)) : "");
    const c = counts(migration);
    fillBar(item.bar, c);
    const left = timeLeft(migration);
    setText(item.numbers, count(c.migrated) + "/" + count(c.total) + (c.failed ? ", " + count(c.failed) + " failed" : "") + (c.rolledBack ? ", " + count(c.rolledBack) + " rolled back" : ""));
    const took = migration.ended && migration.started ? "took " + duration(migration.completed - migration.started) : "";
    setText(item.time, left !== null ? "ETA ~" + duration(left) : took);
    const chosen = migration.key === model.selected;
    item.node.setAttribute("aria-selected", String(chosen));
    item.node.tabIndex = chosen ? 0 : -1;
    item.node.hidden = false;
    const next = before ? before.nextSibling : $("list").firstChild;
    if (next !== item.node) $("list").insertBefore(item.node, next);
    before = item.node;
  }
  setText($("list-title"), "Migrations" + (model.migrations.size > 1 ? " (" + count(model.migrations.size) + ")" : ""));
}

function makeItem(key) {
  const item = {
    name: element("span", { class: "name" }),
    badge: element("span"),
    hubs: element("span"),
    bar: bar(false),
    numbers: element("span"),
    time: element("span"),
    age: element("span"),
  };
  item.node = element(
    "div",
    { class: "item", role: "option", onclick: () => go(key) },
    element("div", { class: "line" }, item.name, item.badge),
    item.bar,
    element("div", { class: "line" }, item.numbers, item.time),
    element("div", { class: "line" }, item.hubs, item.age),
  );
  items.set(key, item);
  return item;
}

$("list").addEventListener("keydown", (event) => {
  const visible = [...items].filter(([, item]) => !item.node.hidden);
  visible.sort(([, a], [, b]) => (a.node.compareDocumentPosition(b.node) & 4 ? -1 : 1));
  const at = visible.findIndex(([key]) => key === model.selected);
  const steps = { ArrowDown: 1, ArrowUp: -1, Home: -visible.length, End: visible.length };
  if (!(event.key in steps) || visible.length === 0) return;
  event.preventDefault();
  const [key, item] = visible[Math.min(visible.length - 1, Math.max(0, at + steps[event.key]))];
  go(key);
  item.node.tabIndex = 0;
  item.node.focus();
});
$("find-migration").addEventListener("input", schedule);
