// The clusters of a migration as a grid: one canvas, since 5,000 nodes would be slow.
import { closeCluster, openCluster } from "./cluster.js";
import { $, element, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { gridChanged } from "./redraw.js";
import { colours, drawShape, shape } from "./shapes.js";
import { BY_LETTER, STATES, labelOf, model } from "./state.js";

const legend = new Map();
export function drawLegend() {
  const totals = {};
  for (const letter of model.clusters?.states || []) totals[letter] = (totals[letter] || 0) + 1;
  for (const state of STATES) {
    if (!legend.has(state.letter)) {
      const label = element("span");
      const toggle = () => {
        if (!model.hidden.delete(state.letter)) model.hidden.add(state.letter);
        gridChanged();
      };
      const button = element("button", { type: "button", onclick: toggle }, shape(state.letter), label);
      $("legend").append(button);
      legend.set(state.letter, { button, label });
    }
    const { button, label } = legend.get(state.letter);
    button.setAttribute("aria-pressed", String(!model.hidden.has(state.letter)));
    setText(label, labelOf(state, model.migrations.get(model.selected)) + " " + count(totals[state.letter] || 0));
    button.classList.toggle("zero", !totals[state.letter]);
  }
}

export const layout = { places: [], columns: 1, pitch: 10, size: 8 };
export function drawGrid() {
  const canvas = $("canvas");
  const clusters = model.clusters;
  if (!clusters) {
    canvas.height = 0;
    canvas.style.height = "0";
    return;
  }
  const wanted = $("find-cluster").value.trim().toLowerCase();
  layout.places = clusters.order.filter((place) => !model.hidden.has(clusters.states[place]) && (!wanted || clusters.names[place].toLowerCase().includes(wanted)));
  // Troubles first; in the order of names within a state.
  const rank = (place) => "frmpd".indexOf(clusters.states[place]);
  if (model.order === "state") layout.places.sort((a, b) => rank(a) - rank(b));
  const n = layout.places.length;
  layout.pitch = n <= 60 ? 26 : n <= 300 ? 20 : n <= 1500 ? 14 : 10;
  layout.size = layout.pitch - (layout.pitch > 16 ? 5 : layout.pitch > 12 ? 4 : 2);
  const width = $("grid").clientWidth;
  layout.columns = Math.max(1, Math.floor(width / layout.pitch));
  const height = Math.max(1, Math.ceil(n / layout.columns)) * layout.pitch;
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const paint = colours();
  for (let at = 0; at < n; ++at) {
    const x = (at % layout.columns) * layout.pitch, y = Math.floor(at / layout.columns) * layout.pitch;
    drawShape(context, clusters.states[layout.places[at]], x + 1, y + 1, layout.size, paint);
  }
  const ring = (at) => {
    context.strokeStyle = paint.focus;
    context.lineWidth = 1.5;
    context.strokeRect((at % layout.columns) * layout.pitch + 0.25, Math.floor(at / layout.columns) * layout.pitch + 0.25, layout.size + 1.5, layout.size + 1.5);
  };
  if (model.cursor >= n) model.cursor = n - 1;
  if (model.cursor >= 0) ring(model.cursor);
  if (model.open) {
    const at = layout.places.findIndex((place) => clusters.names[place] === model.open);
    if (at >= 0) ring(at);
  }
  canvas.setAttribute("aria-label", plural(n, "cluster") + " shown of " + count(clusters.names.length));
  if (model.cursor < 0) setText($("grid-now"), n === clusters.names.length ? plural(n, "cluster") : count(n) + " of " + plural(clusters.names.length, "cluster") + " shown");
}

function clusterAt(event) {
  const box = $("canvas").getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left) / layout.pitch);
  const at = Math.floor((event.clientY - box.top) / layout.pitch) * layout.columns + column;
  return column < layout.columns && at >= 0 && at < layout.places.length ? at : -1;
}

const nameAt = (at) => model.clusters.names[layout.places[at]];
export const stateAt = (at) => labelOf(BY_LETTER.get(model.clusters.states[layout.places[at]]), model.migrations.get(model.selected));

$("canvas").addEventListener("pointermove", (event) => {
  const at = clusterAt(event);
  const tip = $("tip");
  tip.hidden = at < 0;
  if (at < 0) return;
  setText(tip, nameAt(at) + ": " + stateAt(at));
  const x = (at % layout.columns) * layout.pitch, y = Math.floor(at / layout.columns) * layout.pitch;
  tip.style.top = y + layout.pitch + 4 + "px";
  tip.style.left = Math.max(0, Math.min(x, $("grid").clientWidth - tip.offsetWidth - 4)) + "px";
});
$("canvas").addEventListener("pointerleave", () => ($("tip").hidden = true));
$("canvas").addEventListener("click", (event) => {
  const at = clusterAt(event);
  if (at >= 0) openCluster(nameAt(at));
});
$("canvas").addEventListener("keydown", (event) => {
  if (!layout.places.length) return;
  const last = layout.places.length - 1;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: layout.columns, ArrowUp: -layout.columns, Home: -last, End: last };
  if (event.key === "Escape") closeCluster();
  if (event.key === "Enter" && model.cursor >= 0) openCluster(nameAt(model.cursor));
  if (!(event.key in steps)) return;
  event.preventDefault();
  model.cursor = model.cursor < 0 ? 0 : Math.min(last, Math.max(0, model.cursor + steps[event.key]));
  setText($("grid-now"), nameAt(model.cursor) + ": " + stateAt(model.cursor));
  const y = Math.floor(model.cursor / layout.columns) * layout.pitch;
  const grid = $("grid");
  if (y < grid.scrollTop) grid.scrollTop = y;
  else if (y + layout.pitch > grid.scrollTop + grid.clientHeight) grid.scrollTop = y + layout.pitch - grid.clientHeight;
  gridChanged();
});
$("order").addEventListener("input", () => {
  model.order = $("order").value;
  model.cursor = -1;
  gridChanged();
});
$("find-cluster").addEventListener("input", () => {
  model.cursor = -1;
  gridChanged();
});
window.addEventListener("resize", () => {
  gridChanged();
});
