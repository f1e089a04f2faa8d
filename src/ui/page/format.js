// Numbers and times as text.

/** As `hubferry status` writes it: 4s, 1m5s, 2h3m, 3d4h. */
export function duration(ms) {
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
export const count = (value) => number.format(value || 0);

/** Of a day: 14:03:59. */
export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
export const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");

/** Three digits are enough for the eye. */
export const figure = (value) => (value >= 10 ? count(Math.round(value)) : String(value));

/** A time of today is a clock's; of another day, it has its date. All are UTC, as in the manager's log. */
export function when(ms, present) {
  const text = new Date(ms).toISOString();
  const today = new Date(present).toISOString().slice(0, 10);
  return text.slice(0, 10) === today ? text.slice(11, 19) : text.slice(0, 16).replace("T", " ");
}

/** "a; b (c; d)" are two parts: what is in parentheses belongs together. */
export function parts(message) {
  const found = [""];
  let depth = 0;
  for (const piece of message.split(/(; (?:waiting: )?|[()])/)) {
    if (piece === "(") ++depth;
    if (piece === ")") depth = Math.max(0, depth - 1);
    if (!depth && piece.startsWith("; ")) found.push("");
    else found[found.length - 1] += piece;
  }
  return found;
}
