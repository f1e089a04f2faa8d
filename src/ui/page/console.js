// The page of `hubferry manager`: shows what /api/events streams. Plain JavaScript, no dependencies.
// All text reaches the document by textContent: names and messages are data, whatever they contain.
"use strict";

const STATES = [
  { letter: "p", name: "pending", label: "pending" },
  { letter: "m", name: "migrating", label: "migrating" },
  { letter: "d", name: "migrated", label: "migrated" },
  { letter: "f", name: "failed", label: "failed" },
  { letter: "r", name: "rolledBack", label: "rolled back" },
];
const BY_LETTER = new Map(STATES.map((state) => [state.letter, state]));
const BY_NAME = new Map(STATES.map((state) => [state.name, state]));
const collator = new Intl.Collator("en", { numeric: true });
const $ = (id) => document.getElementById(id);

const model = {
  migrations: new Map(), // by key
  hubs: [],
  known: false, // there was a snapshot
  order: "name", // of the shown clusters
  history: new Map(), // requests per second of each hub, the last ones
  about: {},
  skew: 0, // the manager's clock minus ours
  selected: null,
  clusters: null, // of the selected migration: {key, version, names, states, order}
  hidden: new Set(), // letters of states that are filtered out
  cursor: -1, // place in the shown clusters
  token: "",
};

// ---- small helpers -----------------------------------------------------------------------------------------------

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** As `hubferry status` writes it: 4s, 1m5s, 2h3m, 3d4h. */
function duration(ms) {
  let seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return seconds + "s";
  const minutes = Math.floor(seconds / 60);
  seconds %= 60;
  if (minutes < 60) return minutes + "m" + (seconds ? seconds + "s" : "");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return hours + "h" + (minutes % 60 ? (minutes % 60) + "m" : "");
  return Math.floor(hours / 24) + "d" + (hours % 24 ? (hours % 24) + "h" : "");
}

const number = new Intl.NumberFormat("en");
const count = (value) => number.format(value || 0);
const now = () => Date.now() + model.skew;
const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");

/** What a cluster's state is called. Nothing is pending in a migration that has ended. */
const labelOf = (state, migration) => (state.name === "pending" && migration?.ended ? "not started" : state.label);

/** Counts of a migration, each cluster once. The status counts those rolled back among the failed ones as well. */
function counts(migration) {
  if (migration.counts) return migration.counts;
  const c = migration.clusters;
  return { ...c, failed: Math.max(0, c.failed - c.rolledBack) };
}

function timeLeft(migration) {
  if (migration.timeLeft === null || migration.timeLeft === undefined) return null;
  return Math.max(0, migration.timeLeft - (now() - migration.seen));
}

/** Draws the shape of a state into a square of a canvas: shape and colour say the same. */
function drawShape(context, letter, x, y, size, colours) {
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
function colours() {
  if (colourCache) return colourCache;
  const style = getComputedStyle(document.documentElement);
  colourCache = {};
  for (const state of STATES) colourCache[state.letter] = style.getPropertyValue("--" + state.name).trim();
  colourCache.focus = style.getPropertyValue("--text").trim();
  return colourCache;
}

/** The shape of a state as a small picture, for legends. */
function shape(letter) {
  const canvas = element("canvas", { class: "shape", width: 24, height: 24, "aria-hidden": "true", "data-letter": letter });
  drawShape(canvas.getContext("2d"), letter, 0, 0, 24, colours());
  return canvas;
}

// ---- the stream --------------------------------------------------------------------------------------------------

function headers() {
  return model.token ? { Authorization: "Bearer " + model.token } : {};
}

async function read(path) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

function setConnection(state, text) {
  const pill = $("connection");
  if (pill.dataset.state === state && pill.textContent === text) return;
  pill.dataset.state = state;
  pill.textContent = text;
  // What is shown then is what was known last.
  document.body.classList.toggle("stale", state === "lost" && model.known);
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks for a token and waits until there is one. */
function signIn(problem) {
  return new Promise((resolve) => {
    const dialog = $("login");
    $("login-problem").textContent = problem;
    $("token").value = "";
    dialog.showModal();
    $("token").focus();
    const submit = (event) => {
      event.preventDefault();
      if (!$("token").value.trim()) return;
      model.token = $("token").value.trim();
      $("token").value = "";
      $("login-form").removeEventListener("submit", submit);
      dialog.close();
      resolve();
    };
    $("login-form").addEventListener("submit", submit);
  });
}
$("login").addEventListener("cancel", (event) => event.preventDefault());

/** The manager answered, but not with a stream: what it says is shown. */
class Refusal extends Error {}

/** Reads one stream to its end. EventSource would do, but it cannot send a token. */
async function follow() {
  const abort = new AbortController();
  const answer = await fetch("api/events", { headers: headers(), cache: "no-store", signal: abort.signal });
  if (answer.status === 401 || answer.status === 403) {
    const problem = !model.token ? "" : (await answer.text()).trim();
    setConnection("lost", "Not signed in");
    await signIn(problem);
    return;
  }
  if (!answer.ok) throw new Refusal((await answer.text()).trim() || String(answer.status));
  // The manager sends a comment at least every 15 s: silence means that the connection is dead.
  let alarm = 0;
  const listen = () => {
    clearTimeout(alarm);
    alarm = setTimeout(() => abort.abort(), 40000);
  };
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      listen();
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      while ((end = rest.indexOf("\n\n")) >= 0) {
        dispatch(rest.slice(0, end));
        rest = rest.slice(end + 2);
      }
    }
  } finally {
    clearTimeout(alarm);
    abort.abort();
  }
}

async function connect() {
  let pause = 250;
  for (;;) {
    const begun = Date.now();
    let why = "";
    try {
      await follow();
    } catch (error) {
      if (error instanceof Refusal) why = ": " + error.message;
    }
    if (Date.now() - begun > 5000) pause = 250;
    if (why || $("connection").dataset.state !== "connecting") setConnection("lost", "Reconnecting" + why);
    await sleep(pause);
    pause = Math.min(5000, pause * 2);
  }
}

function dispatch(frame) {
  let name = "", data = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (!name || !data) return;
  const content = JSON.parse(data);
  if (content.now) model.skew = content.now - Date.now();
  events[name]?.(content);
  schedule();
}

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
    detailChanged = true;
  },
  migration(content) {
    model.migrations.set(content.it.key, seen(content.it));
    choose();
    if (content.it.key !== model.selected) return;
    detailChanged = true;
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
    if (missed) missed.push(content);
    else applyClusters(content);
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

function applyClusters(content) {
  const shown = model.clusters;
  if (!shown || content.replaced || content.version > shown.version + 1) {
    if (!shown || content.version > shown.version) loadClusters();
    return;
  }
  if (content.version <= shown.version) return;
  shown.version = content.version;
  for (const [letter, places] of Object.entries(content.changes)) for (const place of places) shown.states[place] = letter;
  gridChanged = true;
  const open = model.open ? shown.names.indexOf(model.open) : -1;
  if (Object.values(content.changes).some((places) => places.includes(open))) openCluster(model.open, true);
}

let missed = null; // events that came while the clusters were being loaded
async function loadClusters() {
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
    gridChanged = true;
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

// ---- selection ---------------------------------------------------------------------------------------------------

const age = (migration) => migration.created || 0;
const sorted = () =>
  [...model.migrations.values()].sort((a, b) => a.ended - b.ended || (a.ended ? age(b) - age(a) : 0) || collator.compare(a.key, b.key));

function linked() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch (error) {
    return ""; // no link of ours
  }
}

/** What was linked to, else the first one. */
function choose() {
  const wanted = linked();
  if (model.selected && model.migrations.has(model.selected)) return;
  if (model.migrations.has(wanted)) select(wanted);
  else select(sorted()[0]?.key || null);
}

function select(key) {
  if (model.selected === key) return;
  model.selected = key;
  model.clusters = null;
  model.cursor = -1;
  closeCluster();
  detailChanged = gridChanged = true;
  if (key) loadClusters();
  schedule();
}

window.addEventListener("hashchange", () => {
  const wanted = linked();
  if (model.migrations.has(wanted)) select(wanted);
});

// ---- drawing -----------------------------------------------------------------------------------------------------

let scheduled = false, detailChanged = true, gridChanged = true;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
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
  drawHead(migration);
  drawTimeline(migration);
  if (detailChanged) {
    drawSteps(migration);
    drawConditions(migration);
    drawFailures(migration);
    detailChanged = false;
  }
  if (gridChanged) {
    gridChanged = false;
    drawLegend();
    drawGrid();
  }
}

/** Replaces the text of a node only if it differs: a selection in it survives. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const tiles = new Map();
function drawSummary() {
  const sum = { migrating: 0, migrated: 0, failed: 0, rolledBack: 0, pending: 0 };
  let running = 0;
  for (const migration of model.migrations.values()) {
    if (!migration.ended) ++running;
    const c = counts(migration);
    for (const name of Object.keys(sum)) if (name !== "pending" || !migration.ended) sum[name] += c[name] || 0;
  }
  document.title = (running ? count(running) + " active · " : "") + "hubferry";
  const shown = [["running", running === 1 ? "active migration" : "active migrations", running], ...STATES.map((state) => [state.name, state.label, sum[state.name]])];
  for (const [name, label, value] of shown) {
    if (!tiles.has(name)) {
      const value_node = element("b");
      const letter = BY_NAME.get(name)?.letter;
      const label_node = element("span");
      const tile = element("div", { class: "tile" }, value_node, letter ? shape(letter) : "", label_node);
      $("summary").append(tile);
      tiles.set(name, { tile, value_node, label_node });
    }
    const { tile, value_node, label_node } = tiles.get(name);
    setText(value_node, model.known ? count(value) : "–");
    setText(label_node, label);
    tile.classList.toggle("zero", !value);
  }
}

function bar(big) {
  const node = element("div", { class: big ? "bar big" : "bar", role: "progressbar", "aria-valuemin": 0 });
  for (const name of ["migrated", "rolledBack", "failed", "migrating"]) node.append(element("i", { class: name }));
  return node;
}

function fillBar(node, c) {
  for (const part of node.children) part.style.width = c.total ? (100 * (c[part.className] || 0)) / c.total + "%" : "0";
  node.setAttribute("aria-valuemax", c.total);
  node.setAttribute("aria-valuenow", c.migrated);
  node.setAttribute("aria-label", count(c.migrated) + " of " + plural(c.total, "cluster") + " migrated");
}

function setBadge(node, migration) {
  node.className = migration.ended || migration.kind === "waiting" ? "badge" : "badge running";
  node.dataset.kind = migration.kind;
  setText(node, migration.phase + (migration.deleting ? " (deleting)" : ""));
}

const items = new Map(); // by key
function drawList() {
  const wanted = $("find-migration").value.trim().toLowerCase();
  const shown = sorted().filter((m) => !wanted || (m.key + " " + m.from + " " + m.to + " " + m.phase).toLowerCase().includes(wanted));
  for (const [key, item] of items)
    if (!model.migrations.has(key)) {
      item.node.remove();
      items.delete(key);
    }
  let before = null;
  const several = new Set([...model.migrations.values()].map((m) => m.ns)).size > 1;
  for (const item of items.values()) item.node.hidden = true;
  for (const migration of shown) {
    const item = items.get(migration.key) || makeItem(migration.key);
    setText(item.name, several ? migration.key : migration.name);
    setBadge(item.badge, migration);
    setText(item.hubs, migration.from + " → " + migration.to);
    const c = counts(migration);
    fillBar(item.bar, c);
    const left = timeLeft(migration);
    setText(item.numbers, count(c.migrated) + "/" + count(c.total) + (c.failed + c.rolledBack ? ", " + count(c.failed + c.rolledBack) + " failed" : ""));
    const took = migration.ended && migration.started ? "took " + duration(migration.completed - migration.started) : "";
    setText(item.time, left !== null ? "ETA ~" + duration(left) : took || "age " + duration(now() - age(migration)));
    const chosen = migration.key === model.selected;
    item.node.setAttribute("aria-selected", String(chosen));
    item.node.tabIndex = chosen ? 0 : -1;
    item.node.hidden = false;
    const next = before ? before.nextSibling : $("list").firstChild;
    if (next !== item.node) $("list").insertBefore(item.node, next);
    before = item.node;
  }
  setText($("list-title"), "Migrations" + (model.migrations.size > 1 ? " (" + count(model.migrations.size) + ")" : ""));
}

function makeItem(key) {
  const item = {
    name: element("span", { class: "name" }),
    badge: element("span"),
    hubs: element("span"),
    bar: bar(false),
    numbers: element("span"),
    time: element("span"),
  };
  item.node = element(
    "div",
    { class: "item", role: "option", onclick: () => go(key) },
    element("div", { class: "line" }, item.name, item.badge),
    item.bar,
    element("div", { class: "line" }, item.numbers, item.time),
    element("div", { class: "line" }, item.hubs),
  );
  items.set(key, item);
  return item;
}

function go(key) {
  history.replaceState(null, "", "#" + encodeURIComponent(key));
  select(key);
}

$("list").addEventListener("keydown", (event) => {
  const visible = [...items].filter(([, item]) => !item.node.hidden);
  visible.sort(([, a], [, b]) => (a.node.compareDocumentPosition(b.node) & 4 ? -1 : 1));
  const at = visible.findIndex(([key]) => key === model.selected);
  const steps = { ArrowDown: 1, ArrowUp: -1, Home: -visible.length, End: visible.length };
  if (!(event.key in steps) || visible.length === 0) return;
  event.preventDefault();
  const [key, item] = visible[Math.min(visible.length - 1, Math.max(0, at + steps[event.key]))];
  go(key);
  item.node.tabIndex = 0;
  item.node.focus();
});
$("find-migration").addEventListener("input", schedule);

const head = { key: null };
function drawHead(migration) {
  if (head.key !== migration.key) {
    head.key = migration.key;
    head.badge = element("span");
    head.hubs = element("span", { class: "hubs" });
    head.bar = bar(true);
    head.facts = {};
    const facts = element("div", { class: "facts" });
    for (const name of ["Clusters", "ETA", "Age", "In phase", "Took", "Placement"]) {
      const value = element("span");
      const fact = element("div", {}, element("span", { class: "k" }, name), value);
      head.facts[name] = { fact, value };
      facts.append(fact);
    }
    $("title").replaceChildren(element("strong", { title: migration.name }, migration.name), head.badge, head.hubs);
    $("progress").replaceChildren(head.bar, facts);
  }
  setBadge(head.badge, migration);
  setText(head.hubs, migration.ns + "  ·  " + migration.from + " → " + migration.to);
  const c = counts(migration);
  fillBar(head.bar, c);
  const left = timeLeft(migration);
  const fact = (name, text) => {
    head.facts[name].fact.hidden = !text;
    setText(head.facts[name].value, text || "");
  };
  fact("Clusters", count(c.migrated) + " of " + count(c.total) + " migrated" + (c.failed ? ", " + count(c.failed) + " failed" : "") + (c.rolledBack ? ", " + count(c.rolledBack) + " rolled back" : ""));
  fact("ETA", left === null ? "" : "~" + duration(left));
  fact("Age", migration.created ? duration(now() - migration.created) : "");
  fact("In phase", !migration.ended && migration.phaseStarted ? duration(now() - migration.phaseStarted) : "");
  fact("Took", migration.ended && migration.started ? duration(migration.completed - migration.started) : "");
  fact("Placement", migration.placement);
  if (!detailChanged) return;
  const notices = [];
  if (migration.cause) notices.push(notice("notice bad", migration.cause));
  for (const problem of migration.problems) notices.push(notice("notice warn", problem));
  if (migration.message && !migration.cause.endsWith(migration.message)) notices.push(notice("notice", migration.message, asOf(migration)));
  $("notices").replaceChildren(...notices);
}

/** A message names what is missing one after the other: each gets a line. */
function notice(kind, message, more) {
  const [first, ...others] = message.split(/; (?:waiting: )?/);
  const list = others.length ? element("ul", {}, ...others.map((part) => element("li", {}, part))) : "";
  return element("div", { class: kind }, first, list, more);
}

/** The status is written every few seconds, clusters arrive in between: the counts above may be ahead of its message. */
function asOf(migration) {
  const written = migration.ended ? 0 : Math.max(0, ...migration.conditions.filter((c) => c.message === migration.message).map((c) => c.changed || 0));
  return written ? element("span", { class: "quiet written" }, "as of " + clock(written) + " UTC") : "";
}

function drawTimeline(migration) {
  const spans = migration.timeline;
  const root = $("timeline");
  $("no-timeline").hidden = spans.length > 0;
  const start = Math.min(...spans.map((span) => span.start));
  const end = Math.max(start + 1000, migration.ended ? migration.completed : now());
  while (root.children.length > spans.length) root.lastChild.remove();
  spans.forEach((span, at) => {
    let row = root.children[at];
    if (!row) {
      row = element("div", {}, element("span"), element("div", { class: "track" }, element("i")), element("span", { class: "took" }));
      root.append(row);
    }
    const running = span.phase === migration.phase && !migration.ended;
    const last = span.phase === migration.phase && migration.ended;
    row.className = "span" + (running ? " running" : "") + (span.failed ? " failed" : "") + (last ? " last" : "");
    row.dataset.kind = span.kind;
    const until = span.end || (migration.ended ? span.start : now());
    const fill = row.children[1].firstChild;
    fill.style.left = last ? "100%" : Math.min(99, (100 * (span.start - start)) / (end - start)) + "%";
    fill.style.width = last ? "" : Math.max(0, Math.min(100, (100 * (until - span.start)) / (end - start))) + "%";
    setText(row.children[0], span.phase);
    // The status has the start of the present phase more precisely.
    const from = (running && migration.phaseStarted) || span.start;
    setText(row.children[2], last ? clock(span.start) : duration(until - from));
    row.title = span.phase + " since " + clock(span.start) + " UTC";
  });
}

const marks = { done: "✓", running: "▸", failed: "✕", pending: "·" };
function drawSteps(migration) {
  $("steps").replaceChildren(
    ...migration.steps.map(stepItem),
  );
}

/** "name: what it does (4s) -- message" as `hubferry status` writes it. */
function stepItem(step) {
  const [, line, message] = step.text.match(/^(.*?)(?: -- (.*))?$/s);
  const [, words, took] = line.match(/^(.*?)(?: \(([0-9][0-9a-z.]*)\))?$/s);
  return element(
    "li",
    { "data-state": step.state, "data-depth": Math.min(3, step.depth) },
    element("b", { role: "img", "aria-label": step.state }, marks[step.state]),
    element("span", { class: "words" }, words, message ? element("span", { class: "message" }, message) : ""),
    took ? element("span", { class: "took" }, took) : "",
  );
}

function table(headings, rows) {
  return element(
    "table",
    { class: "stack" },
    element("thead", {}, element("tr", {}, ...headings.map((heading) => element("th", { scope: "col" }, heading)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))),
  );
}

function drawConditions(migration) {
  const state = (c) => (c.status === "True" ? "done" : c.reason === "Waiting" ? "running" : c.status === "False" ? "failed" : "pending");
  const item = (c) =>
    element(
      "li",
      { "data-state": state(c) },
      element("b", { "aria-hidden": "true" }, marks[state(c)]),
      element("div", {}, element("div", { class: "row" }, element("strong", {}, c.type), element("span", { class: "quiet" }, c.status + " · " + c.reason + (c.changed ? " · " + clock(c.changed) : ""))), element("p", {}, c.message)),
    );
  $("conditions").replaceChildren(...migration.conditions.map(item));
  if (!migration.conditions.length) $("conditions").append(element("li", { class: "quiet" }, "None yet."));
}

function drawFailures(migration) {
  const failures = migration.failures;
  $("failures-panel").hidden = failures.length === 0;
  if (!failures.length) return;
  const rows = failures.slice(0, 10).map((f) => [element("button", { type: "button", onclick: () => openCluster(f.cluster) }, f.cluster), f.stage, f.reason, f.message]);
  const more = Math.max(failures.length, migration.clusters.failed) - rows.length;
  $("failures").replaceChildren(table(["Cluster", "Stage", "Reason", "Message"], rows), more > 0 ? element("p", { class: "quiet" }, "… and " + count(more) + " more: filter the clusters above by state.") : "");
}

// ---- clusters ----------------------------------------------------------------------------------------------------

const legend = new Map();
function drawLegend() {
  const totals = {};
  for (const letter of model.clusters?.states || []) totals[letter] = (totals[letter] || 0) + 1;
  for (const state of STATES) {
    if (!legend.has(state.letter)) {
      const label = element("span");
      const toggle = () => {
        if (!model.hidden.delete(state.letter)) model.hidden.add(state.letter);
        gridChanged = true;
        schedule();
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

const layout = { places: [], columns: 1, pitch: 10, size: 8 };
function drawGrid() {
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
const stateAt = (at) => labelOf(BY_LETTER.get(model.clusters.states[layout.places[at]]), model.migrations.get(model.selected));

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
  gridChanged = true;
  schedule();
});
$("order").addEventListener("input", () => {
  model.order = $("order").value;
  model.cursor = -1;
  gridChanged = true;
  schedule();
});
$("find-cluster").addEventListener("input", () => {
  model.cursor = -1;
  gridChanged = true;
  schedule();
});
window.addEventListener("resize", () => {
  gridChanged = true;
  schedule();
});

function closeCluster() {
  model.open = null;
  $("cluster").hidden = true;
  gridChanged = true;
  schedule();
}

// What the open cluster waits for changes with its migration's status; at most every two seconds.
let refreshing = null;
function refreshOpen() {
  if (!model.open || refreshing) return;
  refreshing = setTimeout(() => {
    refreshing = null;
    if (model.open) openCluster(model.open, true);
  }, 2000);
}

async function openCluster(name, refresh) {
  model.open = name;
  if (!refresh) gridChanged = true;
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
    element("li", {}, shape(BY_NAME.get(entry.state).letter), BY_NAME.get(entry.state).label, element("span", { class: "quiet" }, entry.since ? "since " + clock(entry.since) + " UTC" : "since before this manager started"));
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

// ---- hubs and flow -----------------------------------------------------------------------------------------------

/** The hubs of the metrics and those that migrations name, without the global hub unless a migration names it. */
function allHubs() {
  const named = new Set();
  for (const migration of model.migrations.values()) for (const hub of [migration.from, migration.to]) if (hub) named.add(hub);
  const known = new Map(model.hubs.map((hub) => [hub.name, hub]));
  for (const name of named) if (!known.has(name)) known.set(name, { name });
  return [...known.values()].filter((hub) => hub.name !== "other").sort((a, b) => (a.name === "global") - (b.name === "global") || collator.compare(a.name, b.name));
}

const rows = new Map(); // of hubs, by name
function drawHubs() {
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
      row = { badge: element("span"), flight: element("td"), rate: element("td"), latency: element("td"), line: svg("polyline", { points: "" }) };
      const shown = hub.name === "global" ? "global hub" : hub.name;
      const chart = svg("svg", { viewBox: "0 0 60 20", preserveAspectRatio: "none", "aria-hidden": "true" }, row.line);
      row.node = element("tr", {}, element("th", { scope: "row", title: shown }, shown), element("td", {}, row.badge), row.flight, row.rate, row.latency, element("td", { class: "load" }, chart));
      rows.set(hub.name, row);
      $("hub-rows").append(row.node);
    }
    const errors = hub.errorsPerSecond > 0;
    row.badge.className = "badge";
    row.badge.dataset.kind = hub.reachable === false ? "failure" : errors ? "rollback" : hub.reachable ? "success" : "waiting";
    setText(row.badge, hub.reachable === false ? "not reachable" : errors ? hub.errorsPerSecond + " errors/s" : hub.reachable ? "reachable" : hub.name === "global" ? "connected" : "unused");
    if (hub.name === "global" && hub.reachable === undefined && !errors) row.badge.dataset.kind = "success";
    setText(row.flight, hub.inFlight === undefined ? "–" : count(hub.inFlight));
    setText(row.rate, hub.requestsPerSecond === undefined ? "–" : figure(hub.requestsPerSecond));
    setText(row.latency, hub.latencyMs === undefined ? "–" : figure(hub.latencyMs) + " ms");
    const values = model.history.get(hub.name) || [];
    const top = Math.max(1, ...values);
    row.line.setAttribute("points", values.map((value, at) => 60 - values.length + at + 1 + "," + (19 - (17 * value) / top).toFixed(1)).join(" "));
  }
}

/** Three digits are enough for the eye. */
const figure = (value) => (value >= 10 ? count(Math.round(value)) : String(value));

let flowShown = "";
function drawFlow() {
  const edges = new Map();
  for (const migration of model.migrations.values()) {
    if (!migration.from || !migration.to) continue;
    const key = JSON.stringify([migration.from, migration.to]);
    const edge = edges.get(key) || { from: migration.from, to: migration.to, total: 0, migrated: 0, migrating: 0, rolledBack: 0, failed: 0, left: 0, open: false, moving: false, back: false };
    const c = counts(migration);
    for (const name of ["migrated", "migrating", "rolledBack", "failed"]) edge[name] += c[name] || 0;
    // What has not arrived when a migration ends is no longer on its way.
    edge.total += migration.ended ? c.migrated : c.total;
    if (!migration.ended) {
      edge.open = true;
      if (migration.kind !== "rollback") edge.left += c.pending + c.migrating;
    }
    if (migration.kind === "forward") edge.moving = true;
    if (migration.kind === "rollback") edge.back = true;
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

/** "245 of 300", "300 moved", "12 of 20, 3 rolled back". */
function flowText(edge) {
  const parts = [];
  if (edge.open && edge.total) parts.push(count(edge.migrated) + " of " + count(edge.total));
  else if (edge.migrated) parts.push(count(edge.migrated) + " moved");
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
    const y = a.x === b.x ? middle[1] : middle[1] - bend * 0.25;
    const wide = text.length * 6.4 + 18;
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
    small.textContent = [leaving ? count(leaving) + " to go" : "", here ? count(here) + " arrived" : ""].filter(Boolean).join(", ") || (sources.has(name) ? "source" : "target");
    return svg("g", { class: down.has(name) ? "node down" : "node" }, svg("rect", { x: place.x - box.width / 2, y: place.y - box.height / 2, width: box.width, height: box.height, rx: 10 }), title, small, svg("title", {}, name));
  });
  const words = edges.map((edge) => edge.from + " to " + edge.to + ": " + flowText(edge)).join("; ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, ...lines, ...nodes, ...labels);
}

// ---- theme and start ---------------------------------------------------------------------------------------------

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
function repaint() {
  colourCache = null;
  for (const canvas of document.querySelectorAll("canvas.shape")) {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, 24, 24);
    drawShape(context, canvas.dataset.letter, 0, 0, 24, colours());
  }
  const theme = document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light");
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  gridChanged = true;
  schedule();
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
repaint();
setInterval(schedule, 1000);
connect();
