// The clusters of the selected migration: read once, then kept up to date by events.
import { openCluster } from "./cluster.js";
import { changed, gridChanged, schedule } from "./redraw.js";
import { collator, model } from "./state.js";
import { read } from "./stream.js";

/** An event that came while they are being read waits for them. */
export function takeClusters(content) {
  if (missed) missed.push(content);
  else applyClusters(content);
}

function applyClusters(content) {
  const shown = model.clusters;
  if (!shown || content.replaced || content.version > shown.version + 1) {
    if (!shown || content.version > shown.version) loadClusters();
    return;
  }
  if (content.version <= shown.version) return;
  shown.version = content.version;
  for (const [letter, places] of Object.entries(content.changes)) for (const place of places) shown.states[place] = letter;
  gridChanged();
  const open = model.open ? shown.names.indexOf(model.open) : -1;
  if (Object.values(content.changes).some((places) => places.includes(open))) openCluster(model.open, true);
}

let missed = null; // events that came while the clusters were being loaded
export const areLoading = () => missed !== null;

export async function loadClusters() {
  if (missed) {
    missed.again = true;
    return;
  }
  const key = model.selected;
  if (!key) return;
  missed = [];
  try {
    const clusters = await read("api/clusters?migration=" + encodeURIComponent(key));
    clusters.states = [...clusters.states];
    clusters.order = clusters.names.map((_, place) => place).sort((a, b) => collator.compare(clusters.names[a], clusters.names[b]));
    if (key === model.selected) model.clusters = clusters;
    changed.grid = true;
  } catch (error) {
    // A lost connection loads them again when it is back; an answer that was refused, only this.
    setTimeout(() => key === model.selected && !model.clusters && loadClusters(), 2000);
  }
  const late = missed;
  missed = null;
  if (late.again || key !== model.selected) loadClusters();
  else late.forEach(applyClusters);
  schedule();
}
