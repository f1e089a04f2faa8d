// The diagram of clusters that flow between hubs.
import { $, element, svg } from "./dom.js";
import { count } from "./format.js";
import { collator, counts, model } from "./state.js";

let flowShown = "";
export function drawFlow() {
  const edges = new Map();
  for (const migration of model.migrations.values()) {
    if (!migration.from || !migration.to) continue;
    const key = JSON.stringify([migration.from, migration.to]);
    const edge = edges.get(key) || { from: migration.from, to: migration.to, total: 0, migrated: 0, migrating: 0, rolledBack: 0, failed: 0, left: 0, returning: 0, open: false, moving: false, back: false };
    const c = counts(migration);
    for (const name of ["migrated", "migrating", "rolledBack", "failed"]) edge[name] += c[name] || 0;
    // What has not arrived when a migration ends is no longer on its way.
    edge.total += migration.ended ? c.migrated : c.total;
    if (!migration.ended) {
      edge.open = true;
      if (migration.kind !== "rollback") edge.left += c.pending + c.migrating;
    }
    if (migration.kind === "forward") edge.moving = true;
    if (migration.kind === "rollback") {
      edge.back = true;
      edge.returning += c.pending + c.migrating;
    }
    edges.set(key, edge);
  }
  const down = model.hubs.filter((hub) => hub.reachable === false).map((hub) => hub.name);
  const width = Math.max(320, Math.min(720, $("flow").clientWidth));
  const shown = JSON.stringify([[...edges.values()], down, width]);
  if (shown === flowShown) return;
  flowShown = shown;
  if (!edges.size) {
    $("flow").replaceChildren(element("p", { class: "quiet" }, "Nothing moves yet."));
    return;
  }
  $("flow").replaceChildren(flowDiagram([...edges.values()], new Set(down), width));
}

/** "245 of 300", "300 moved", "12 of 20, 3 returning, 5 rolled back". */
function flowText(edge) {
  const parts = [];
  if (edge.open && edge.total) parts.push(count(edge.migrated) + " of " + count(edge.total));
  else if (edge.migrated) parts.push(count(edge.migrated) + " moved");
  if (edge.returning) parts.push(count(edge.returning) + " returning");
  if (edge.rolledBack) parts.push(count(edge.rolledBack) + " rolled back");
  if (edge.failed) parts.push(count(edge.failed) + " failed");
  return parts.join(", ") || "none moved";
}

/** A line that is drawn anew with each change goes on where the one before was. */
function moving(kind, path) {
  const line = svg("path", { class: kind, d: path });
  line.style.animationDelay = -(performance.now() % 1000) + "ms";
  return line;
}

function flowDiagram(edges, down, width) {
  const sources = new Set(edges.map((edge) => edge.from)), targets = new Set(edges.map((edge) => edge.to));
  const columns = [[], [], []];
  for (const name of [...new Set([...sources, ...targets])].sort(collator.compare)) columns[!targets.has(name) ? 0 : !sources.has(name) ? 2 : 1].push(name);
  // Hubs that clusters move to and from are in the middle, but not all of them.
  if (!columns[0].length) columns[0] = columns[1].splice(0, 1);
  if (!columns[2].length) columns[2] = columns[1].splice(-1, 1);
  const used = columns.filter((column) => column.length);
  const box = { width: width >= 480 ? 132 : used.length > 2 ? 76 : 92, height: 52 };
  const rows = Math.max(...used.map((column) => column.length));
  const height = Math.max(120, rows * 74 + 16);
  const at = new Map();
  used.forEach((column, c) =>
    column.forEach((name, r) => at.set(name, { x: used.length === 1 ? width / 2 : box.width / 2 + 4 + (c * (width - box.width - 8)) / (used.length - 1), y: (height * (r + 0.5)) / column.length })),
  );
  const lines = [], labels = [];
  let lowest = height;
  edges.forEach((edge) => {
    const a = at.get(edge.from), b = at.get(edge.to);
    const right = a.y <= b.y ? 1 : -1; // of two in a column
    const bend = a.x === b.x ? 90 * right : edges.some((other) => other.from === edge.to && other.to === edge.from) ? (a.x < b.x ? -46 : 46) : 0;
    const side = a.x <= b.x ? 1 : -1;
    const x1 = a.x + ((a.x === b.x ? right : side) * box.width) / 2, x2 = b.x + ((a.x === b.x ? right : -side) * box.width) / 2;
    const middle = a.x === b.x ? [x1 + bend, (a.y + b.y) / 2] : [(x1 + x2) / 2, (a.y + b.y) / 2 + bend];
    const path = a.x === b.x ? `M${x1} ${a.y} Q${middle[0]} ${middle[1]} ${x2} ${b.y}` : `M${x1} ${a.y} C${(x1 + x2) / 2} ${a.y + bend} ${(x1 + x2) / 2} ${b.y + bend} ${x2} ${b.y}`;
    const thick = 5 + Math.min(13, 2.6 * Math.log10(1 + edge.total));
    const group = svg("g", {});
    group.append(svg("path", { class: "edge", d: path, "stroke-width": thick }));
    if (edge.migrated) group.append(svg("path", { class: "done", d: path, "stroke-width": thick, pathLength: 100, "stroke-dasharray": (100 * edge.migrated) / Math.max(edge.total, edge.migrated) + " 200" }));
    if (edge.moving && edge.migrating) group.append(moving("moving", path));
    if (edge.back) group.append(moving("back", path));
    const arrows = a.x === b.x ? ["↓ ", "↑ "] : ["→ ", "← "];
    const text = arrows[(a.x === b.x ? a.y : a.x) <= (a.x === b.x ? b.y : b.x) ? 0 : 1] + flowText(edge);
    group.append(svg("title", {}, edge.from + " to " + edge.to + ": " + text));
    lines.push(group);
    const wide = text.length * 6.4 + 18;
    // On a phone a long one does not fit between two hubs, but between their rows.
    const below = a.x !== b.x && !bend && wide > Math.abs(x2 - x1) - 6;
    const y = a.x === b.x ? middle[1] : below ? middle[1] + 39 : middle[1] - bend * 0.25;
    lowest = Math.max(lowest, y + 13);
    const caption = svg("text", { class: "small", x: middle[0], y: y + 4 });
    caption.textContent = text;
    labels.push(svg("g", { class: "label" }, svg("rect", { x: middle[0] - wide / 2, y: y - 11, width: wide, height: 22, rx: 11 }), caption));
  });
  const nodes = [...at].map(([name, place]) => {
    const sum = (side, figure) => edges.filter((edge) => edge[side] === name).reduce((all, edge) => all + figure(edge), 0);
    const leaving = sum("from", (edge) => edge.left), here = sum("to", (edge) => edge.migrated);
    const title = svg("text", { x: place.x, y: place.y - 2 });
    title.textContent = name.length > box.width / 8.5 ? name.slice(0, Math.floor(box.width / 8.5) - 1) + "…" : name;
    const small = svg("text", { class: "small", x: place.x, y: place.y + 15 });
    small.textContent = [leaving ? count(leaving) + " to go" : "", here ? count(here) + " arrived" : ""].filter(Boolean).join(", ");
    if (down.has(name)) small.textContent = "not reachable";
    small.textContent ||= (sources.has(name) ? "source" : "target");
    return svg("g", { class: down.has(name) ? "node down" : "node" }, svg("rect", { x: place.x - box.width / 2, y: place.y - box.height / 2, width: box.width, height: box.height, rx: 10 }), title, small, svg("title", {}, name));
  });
  const words = edges.map((edge) => edge.from + " to " + edge.to + ": " + flowText(edge)).join("; ");
  return svg("svg", { viewBox: `0 0 ${width} ${lowest}`, role: "img", "aria-label": words }, ...lines, ...nodes, ...labels);
}
