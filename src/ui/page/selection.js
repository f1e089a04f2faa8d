// Which migration is shown: the one of the address, else the first.
import { closeCluster } from "./cluster.js";
import { loadClusters } from "./clusters.js";
import { changed, schedule } from "./redraw.js";
import { model, sorted } from "./state.js";

function linked() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch (error) {
    return ""; // no link of ours
  }
}

/** What was linked to, else the first one. */
export function choose() {
  const wanted = linked();
  if (model.selected && model.migrations.has(model.selected)) return;
  if (model.migrations.has(wanted)) select(wanted);
  else select(sorted()[0]?.key || null);
}

export function select(key) {
  if (model.selected === key) return;
  model.selected = key;
  model.clusters = null;
  model.cursor = -1;
  closeCluster();
  changed.detail = changed.grid = true;
  if (key) loadClusters();
  schedule();
}

window.addEventListener("hashchange", () => {
  const wanted = linked();
  if (model.migrations.has(wanted)) select(wanted);
});

export function go(key) {
  history.replaceState(null, "", "#" + encodeURIComponent(key));
  select(key);
}
