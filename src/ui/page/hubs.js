// The table of hubs.
import { $, element, setText, svg } from "./dom.js";
import { count, figure } from "./format.js";
import { collator, inFlight, model } from "./state.js";

/** The hubs of the metrics and those that migrations name, without the global hub unless a migration names it. */
function allHubs() {
  const named = new Set();
  for (const migration of model.migrations.values()) for (const hub of [migration.from, migration.to]) if (hub) named.add(hub);
  const known = new Map(model.hubs.map((hub) => [hub.name, hub]));
  for (const name of named) if (!known.has(name)) known.set(name, { name });
  return [...known.values()].filter((hub) => hub.name !== "other").sort((a, b) => (a.name === "global") - (b.name === "global") || collator.compare(a.name, b.name));
}

const rows = new Map(); // of hubs, by name
export function drawHubs() {
  const hubs = allHubs();
  const names = new Set(hubs.map((hub) => hub.name));
  for (const [name, row] of rows)
    if (!names.has(name)) {
      row.node.remove();
      rows.delete(name);
    }
  for (const hub of hubs) {
    let row = rows.get(hub.name);
    if (!row) {
      row = { badge: element("span"), flight: element("td"), rate: element("td"), latency: element("td"), line: svg("polyline", { points: "" }), peak: svg("title", {}) };
      const shown = hub.name === "global" ? "global hub" : hub.name;
      const chart = svg("svg", { viewBox: "0 0 60 20", preserveAspectRatio: "none", "aria-hidden": "true" }, row.peak, row.line);
      row.node = element("tr", {}, element("th", { scope: "row", title: shown }, shown), element("td", {}, row.badge), row.flight, row.rate, row.latency, element("td", { class: "load" }, chart));
      rows.set(hub.name, row);
      $("hub-rows").append(row.node);
    }
    const errors = hub.errorsPerSecond > 0;
    row.badge.className = "badge";
    row.badge.dataset.kind = hub.reachable === false ? "failure" : errors ? "rollback" : hub.reachable ? "success" : "waiting";
    setText(row.badge, hub.reachable === false ? "not reachable" : errors ? hub.errorsPerSecond + " errors/s" : hub.reachable ? "reachable" : hub.name === "global" ? "connected" : inFlight(hub.name) ? "unknown" : "unused");
    row.badge.title = hub.reachable === undefined && hub.name !== "global" ? "this process has no connection to it; the leader has" : "";
    if (hub.name === "global" && hub.reachable === undefined && !errors) row.badge.dataset.kind = "success";
    setText(row.flight, hub.name === "global" ? "–" : count(inFlight(hub.name)));
    setText(row.rate, hub.requestsPerSecond === undefined ? "–" : figure(hub.requestsPerSecond));
    setText(row.latency, hub.latencyMs === undefined ? "–" : figure(hub.latencyMs) + " ms");
    const values = model.history.get(hub.name) || [];
    const top = Math.max(1, ...values);
    setText(row.peak, "requests per second in the last two minutes: at most " + figure(Math.max(0, ...values)));
    row.line.setAttribute("points", values.map((value, at) => 60 - values.length + at + 1 + "," + (19 - (17 * value) / top).toFixed(1)).join(" "));
  }
}
