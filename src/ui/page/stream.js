// The connection to the manager: its stream of events, kept alive, and single answers. With --ui-auth=token it asks for a
// token.
import { $ } from "./dom.js";
import { schedule } from "./redraw.js";
import { model } from "./state.js";

function headers() {
  return model.token ? { Authorization: "Bearer " + model.token } : {};
}

export async function read(path) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

export function setConnection(state, text) {
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
async function follow(events) {
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
        dispatch(events, rest.slice(0, end));
        rest = rest.slice(end + 2);
      }
    }
  } finally {
    clearTimeout(alarm);
    abort.abort();
  }
}

/** Follows the stream for ever: each event goes to the function of its name. */
export async function connect(events) {
  let pause = 250;
  for (;;) {
    const begun = Date.now();
    let why = "";
    try {
      await follow(events);
    } catch (error) {
      if (error instanceof Refusal) why = ": " + error.message;
    }
    if (Date.now() - begun > 5000) pause = 250;
    if (why || $("connection").dataset.state !== "connecting") setConnection("lost", "Reconnecting" + why);
    await sleep(pause);
    pause = Math.min(5000, pause * 2);
  }
}

function dispatch(events, frame) {
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
