// The page of `hubferry manager`: shows what api/events streams. Plain JavaScript, no dependencies.
import { refreshOpen } from "./cluster.js";
import { loadClusters, takeClusters } from "./clusters.js";
import { drawDetail } from "./detail.js";
import { $ } from "./dom.js";
import { drawFlow } from "./flow.js";
import { drawGrid, drawLegend } from "./grid.js";
import { drawHubs } from "./hubs.js";
import { drawList, drawSummary } from "./list.js";
import { changed, gridChanged, onFrame, schedule } from "./redraw.js";
import { choose, select } from "./selection.js";
import { repaintShapes } from "./shapes.js";
import { model, now } from "./state.js";
import { connect, setConnection } from "./stream.js";

const events = {
  snapshot(content) {
    setConnection("live", "Live");
    model.known = true;
    model.about = content.about;
    model.hubs = content.hubs;
    model.migrations = new Map(content.migrations.map((migration) => [migration.key, seen(migration)]));
    model.clusters = null;
    choose();
    loadClusters();
    changed.detail = true;
  },
  migration(content) {
    const before = model.migrations.get(content.it.key);
    model.migrations.set(content.it.key, seen(content.it));
    choose();
    if (content.it.key !== model.selected) return;
    changed.detail = true;
    // What a state is called depends on it, whether or not a cluster changes.
    if (before?.kind !== content.it.kind) changed.grid = true;
    refreshOpen();
  },
  removed(content) {
    model.migrations.delete(content.key);
    if (content.key === model.selected) select(null);
    choose();
  },
  clusters(content) {
    const migration = model.migrations.get(content.key);
    if (migration && content.counts) migration.counts = content.counts;
    if (content.key !== model.selected) return;
    takeClusters(content);
  },
  hubs(content) {
    model.hubs = content.hubs;
    for (const hub of content.hubs) {
      const values = model.history.get(hub.name) || [];
      values.push(hub.requestsPerSecond || 0);
      model.history.set(hub.name, values.slice(-60));
    }
  },
};

function seen(migration) {
  migration.seen = now();
  return migration;
}

function draw() {
  $("version").textContent = model.about.version || "";
  const any = model.migrations.size > 0;
  $("empty").hidden = any || $("connection").dataset.state !== "live";
  $("columns").hidden = !any;
  $("overview").hidden = !model.known || (!any && !model.hubs.length);
  drawSummary();
  drawList();
  drawHubs();
  drawFlow();
  const migration = model.migrations.get(model.selected);
  if (!migration) return;
  drawDetail(migration);
  if (!changed.grid) return;
  changed.grid = false;
  drawLegend();
  drawGrid();
}

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
function repaint() {
  repaintShapes();
  const theme = document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light");
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  gridChanged();
}

$("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("theme", document.documentElement.dataset.theme);
  } catch (error) {
    /* storage may be forbidden: the choice lasts as long as the page */
  }
  repaint();
});
try {
  const kept = localStorage.getItem("theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch (error) {
  /* as above */
}
prefersDark.addEventListener("change", repaint);
onFrame(draw);
repaint();

setInterval(schedule, 1000);
connect(events);
