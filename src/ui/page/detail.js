// The selected migration: its head with progress and messages, time line, steps, conditions and failures.
import { openCluster } from "./cluster.js";
import { $, element, setText } from "./dom.js";
import { count, duration, parts, when } from "./format.js";
import { bar, fillBar, setBadge } from "./progress.js";
import { changed } from "./redraw.js";
import { counts, now, timeLeft } from "./state.js";

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
  if (!changed.detail) return;
  const notices = [];
  if (migration.cause) notices.push(notice(migration.cause.startsWith("Cancelled") ? "notice warn" : "notice bad", migration.cause));
  for (const problem of migration.problems) notices.push(notice("notice warn", problem));
  if (migration.message && !migration.cause.endsWith(migration.message)) notices.push(notice("notice", migration.message, asOf(migration)));
  $("notices").replaceChildren(...notices);
}

/** A message names what is missing one after the other: each gets a line. */
function notice(kind, message, more) {
  const [first, ...others] = parts(message);
  const list = others.length ? element("ul", {}, ...others.map((part) => element("li", {}, part))) : "";
  return element("div", { class: kind }, first, list, more);
}

/** The status is written every few seconds, clusters arrive in between: the counts above may be ahead of its message. */
function asOf(migration) {
  const written = migration.ended ? 0 : Math.max(0, ...migration.conditions.filter((c) => c.message === migration.message).map((c) => c.changed || 0));
  return written ? element("span", { class: "quiet written" }, "as of " + when(written, now()) + " UTC") : "";
}

function drawTimeline(migration) {
  const spans = migration.timeline;
  const root = $("timeline");
  $("no-timeline").hidden = spans.length > 0;
  $("axis").hidden = spans.length === 0;
  const start = Math.min(...spans.map((span) => span.start));
  const end = Math.max(start + 1000, migration.ended ? migration.completed : now());
  if (spans.length) setText($("axis-start"), when(start, now()) + " UTC");
  setText($("axis-end"), migration.ended ? when(end, now()) + " UTC" : "now");
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
    setText(row.children[2], last ? "" : duration(until - from));
    row.title = span.phase + " since " + when(span.start, now()) + " UTC";
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
      element("div", {}, element("div", { class: "row" }, element("strong", {}, c.type), element("span", { class: "quiet" }, c.status + " · " + c.reason + (c.changed ? " · " + when(c.changed, now()) : ""))), element("p", {}, c.message)),
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

export function drawDetail(migration) {
  drawHead(migration);
  drawTimeline(migration);
  if (!changed.detail) return;
  changed.detail = false;
  drawSteps(migration);
  drawConditions(migration);
  drawFailures(migration);
}
