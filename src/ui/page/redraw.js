// Draws once per frame, whatever has changed in between.

/** What of the selected migration has changed since the last frame; the rest is cheap, and drawn each time. */
export const changed = { detail: true, grid: true };

let draw = null, scheduled = false;

export function onFrame(action) {
  draw = action;
}

export function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

export function gridChanged() {
  changed.grid = true;
  schedule();
}
