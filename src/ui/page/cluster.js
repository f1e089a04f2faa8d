// The panel of one cluster: its state, reason and history.
import { $, element } from "./dom.js";
import { when } from "./format.js";
import { gridChanged, schedule } from "./redraw.js";
import { shape } from "./shapes.js";
import { BY_NAME, labelOf, model, now } from "./state.js";
import { read } from "./stream.js";

export function closeCluster() {
  model.open = null;
  $("cluster").hidden = true;
  gridChanged();
}

// What the open cluster waits for changes with its migration's status; at most every two seconds.
let refreshing = null;
export function refreshOpen() {
  if (!model.open || refreshing) return;
  refreshing = setTimeout(() => {
    refreshing = null;
    if (model.open) openCluster(model.open, true);
  }, 2000);
}

export async function openCluster(name, refresh) {
  model.open = name;
  if (!refresh) gridChanged();
  let cluster;
  try {
    cluster = await read("api/cluster?migration=" + encodeURIComponent(model.selected) + "&name=" + encodeURIComponent(name));
  } catch (error) {
    return;
  }
  if (model.open !== name) return;
  const state = BY_NAME.get(cluster.state);
  const line = (label, text) => (text ? element("p", {}, element("span", { class: "quiet" }, label + " "), text) : "");
  const step = (entry) =>
    element("li", {}, shape(BY_NAME.get(entry.state).letter), BY_NAME.get(entry.state).label, element("span", { class: "quiet" }, entry.since ? "since " + when(entry.since, now()) + " UTC" : "since before this manager started"));
  const kinds = { pending: "waiting", migrated: "success", failed: "failure", rolledBack: "rollback" };
  const badge = element("span", { class: "badge", "data-kind": kinds[state.name] || "forward" }, labelOf(state, model.migrations.get(model.selected)));
  $("cluster").replaceChildren(
    element("div", { class: "row" }, element("strong", {}, cluster.name), badge, element("span", { class: "spacer" }), element("button", { type: "button", onclick: closeCluster, "aria-label": "Close" }, "Close")),
    line("Reason", cluster.reason ? cluster.reason + (cluster.stage ? " in " + cluster.stage : "") : ""),
    line("Message", cluster.message),
    line("Waiting for", cluster.waiting),
    element("ol", { "aria-label": "History" }, ...cluster.history.map(step)),
  );
  $("cluster").hidden = false;
  // Beside the grid rather than over it, where both fit on the screen.
  const panel = $("clusters-panel");
  const fits = panel.offsetHeight < window.innerHeight - 80;
  if (!refresh) (fits ? panel : $("cluster")).scrollIntoView({ block: "nearest" });
  schedule();
}
