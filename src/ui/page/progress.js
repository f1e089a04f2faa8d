// Bars and badges: how far a migration is.
import { element, setText } from "./dom.js";
import { count, plural } from "./format.js";

export function bar(big) {
  const node = element("div", { class: big ? "bar big" : "bar", role: "progressbar", "aria-valuemin": 0 });
  for (const name of ["migrated", "rolledBack", "failed", "migrating"]) node.append(element("i", { class: name }));
  return node;
}

export function fillBar(node, c) {
  for (const part of node.children) part.style.width = c.total ? (100 * (c[part.className] || 0)) / c.total + "%" : "0";
  node.setAttribute("aria-valuemax", c.total);
  node.setAttribute("aria-valuenow", c.migrated);
  node.setAttribute("aria-label", count(c.migrated) + " of " + plural(c.total, "cluster") + " migrated");
}

export function setBadge(node, migration) {
  node.className = migration.ended || migration.kind === "waiting" ? "badge" : "badge running";
  node.dataset.kind = migration.kind;
  setText(node, migration.phase + (migration.deleting ? " (deleting)" : ""));
}
