// The shapes of clusters' states: a shape and a colour say the same.
import { element } from "./dom.js";
import { STATES } from "./state.js";

/** Draws the shape of a state into a square of a canvas: shape and colour say the same. */
export function drawShape(context, letter, x, y, size, colours) {
  const colour = colours[letter];
  const inset = size > 9 ? 1 : 0.5;
  const left = x + inset, top = y + inset, side = size - 2 * inset;
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = size > 9 ? 2 : 1.25;
  context.beginPath();
  if (letter === "p") {
    context.strokeRect(left + 0.75, top + 0.75, side - 1.5, side - 1.5);
  } else if (letter === "m") {
    context.arc(left + side / 2, top + side / 2, side / 2, 0, 7);
    context.fill();
  } else if (letter === "d") {
    context.fillRect(left, top, side, side);
  } else if (letter === "f") {
    context.lineWidth = Math.max(2, size / 5);
    context.moveTo(left + 1, top + 1);
    context.lineTo(left + side - 1, top + side - 1);
    context.moveTo(left + side - 1, top + 1);
    context.lineTo(left + 1, top + side - 1);
    context.stroke();
  } else {
    context.moveTo(left + side, top);
    context.lineTo(left, top + side / 2);
    context.lineTo(left + side, top + side);
    context.fill();
  }
}

let colourCache = null;
export function colours() {
  if (colourCache) return colourCache;
  const style = getComputedStyle(document.documentElement);
  colourCache = {};
  for (const state of STATES) colourCache[state.letter] = style.getPropertyValue("--" + state.name).trim();
  colourCache.focus = style.getPropertyValue("--text").trim();
  return colourCache;
}

/** The shape of a state as a small picture, for legends. */
export function shape(letter) {
  const canvas = element("canvas", { class: "shape", width: 24, height: 24, "aria-hidden": "true", "data-letter": letter });
  drawShape(canvas.getContext("2d"), letter, 0, 0, 24, colours());
  return canvas;
}

/** After a change of the theme. */
export function repaintShapes() {
  colourCache = null;
  for (const canvas of document.querySelectorAll("canvas.shape")) {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, 24, 24);
    drawShape(context, canvas.dataset.letter, 0, 0, 24, colours());
  }
}
