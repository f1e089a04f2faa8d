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

export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
export const plural = (n, word) => count(n) + " " + word + (n === 1 ? "" : "s");

/** Three digits are enough for the eye. */
export const figure = (value) => (value >= 10 ? count(Math.round(value)) : String(value));
