// Keeps relative times fresh, in the words of runs/pages/words.py:
//   <time data-form="ago">, <time data-form="bare">, and <span data-seconds-until="moment"> counting down.

const [days, hours, minutes, seconds, now, ago, ahead] = document.body.dataset.timeWords.split("|");
const UNITS = [
  [86400, days],
  [3600, hours],
  [60, minutes],
  [1, seconds],
];
const returned = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
// The server's clock, unless the page comes out of a cache and its hour with it.
const apart = returned ? 0 : Date.parse(document.body.dataset.now) - Date.now() || 0;

setInterval(() => tell(), 10_000);
setInterval(count, 1_000);
document.addEventListener("visibilitychange", () => tell());

// `least`: only those that are no longer ago than so many seconds, or still to come within a minute.
function tell(least = Infinity) {
  if (document.visibilityState !== "visible") return;
  for (const time of document.querySelectorAll("time[data-form]")) {
    const length = (clock() - Date.parse(time.dateTime)) / 1000;
    if (length > least || (length < -60 && least < Infinity)) continue;
    const text = since(length, time.dataset.form === "bare");
    const words = (time.dataset.prefix ?? "") + text;
    if (time.textContent !== words) time.textContent = words;
  }
}

function count() {
  tell(1); // what comes within a minute counts down
  for (const span of document.querySelectorAll("[data-seconds-until]")) {
    const left = Math.max(0, Math.ceil((Date.parse(span.dataset.secondsUntil) - clock()) / 1000));
    if (span.textContent !== String(left)) span.textContent = left;
  }
}

function clock() {
  return Date.now() + apart;
}

function since(length, bare) {
  if (bare) return parts(Math.abs(length), 1);
  if (Math.abs(length) < 1) return now;
  return length < 0 ? ahead.replace("%(span)s", parts(-length, 2)) : ago.replace("%(span)s", parts(length, 1));
}

function parts(length, most) {
  let rest = Math.trunc(length);
  const found = [];
  for (const [size, unit] of UNITS) {
    const many = Math.trunc(rest / size);
    rest %= size;
    found.push([many, unit]);
  }
  const first = Math.max(0, found.findIndex(([many]) => many > 0));
  const from = found.some(([many]) => many > 0) ? first : found.length - 1;
  return found
    .slice(from, from + most)
    .filter(([many], index) => many > 0 || index === 0)
    .map(([many, unit]) => `${many}\u00a0${unit}`)
    .join(" ");
}
