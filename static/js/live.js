// Keeps a page true. The socket brings names of changed things, never the things: whatever carries that name is
// read again from its own address, with the reader's own rights, and morphed into place.
//
//   <section data-live="run:ID" data-live-url="/runs/ID/timeline/" data-live-says="Waiting for you">
//
// What one thing is named by is read at once; lists, which change with everything, a moment later and not one by one.
// What one thing changes in several places comes in one answer: data-live-brings of one of them holds the ids of the
// others, which its address answers with (each in an <hx-partial>). data-live may hold several names. data-live-says is announced politely when a read changes it. The server is told
// which names the page has, and how old it is, whenever they change; it answers each time (runs/live/sockets.py).
// Who has paused it (data-follow="off" on the body) reads what changed by loading the page again. A page that nobody
// looks at reads nothing, and everything once it is looked at: with many open, the server works for those in front.

const POLL = 30_000;
const REREAD = 60_000;
const GATHER = 120;
const REST = 300;
const MARK_AFTER = 3_000;
const PATIENCE = 10_000;
const MOST = 200;
const FRESH = 10;

const mark = document.querySelector("[data-live-mark]");
const reading = new WeakMap();
const named = new Set();
let socket;
let pause = 500;
let open = false;
let gathering;
let polling;
let watched;
let watching;

connect();
new MutationObserver(() => (watching ??= setTimeout(watch, GATHER))).observe(document.body, {
  subtree: true,
  childList: true,
  attributeFilter: ["data-live"],
});
setInterval(() => visible() && read(), REREAD);
document.addEventListener("visibilitychange", () => visible() && read());
addEventListener("online", () => !open && connect());
addEventListener("pagehide", () => socket?.close());
addEventListener("pageshow", (event) => event.persisted && connect(true));
document.addEventListener("follow", () => (isPaused() ? (socket?.close(), show("paused")) : connect(true)));

function connect(missed = Boolean(polling)) {
  if (isPaused()) return show("paused");
  if (socket && socket.readyState < WebSocket.CLOSING) return;
  open = false;
  const address = new URL(document.body.dataset.socket, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const opened = (socket = new WebSocket(address));
  setTimeout(() => opened === socket && !open && opened.close(), PATIENCE);
  opened.addEventListener("open", () => {
    watched = undefined;
    watch(missed ? 0 : performance.now() / 1_000);
  });
  opened.addEventListener("message", (event) => {
    if (!open) answered(missed);
    const { changed = [] } = JSON.parse(event.data);
    const things = changed.filter((name) => name.includes(":"));
    if (things.length && visible()) read(new Set(things));
    for (const name of changed) if (!name.includes(":")) named.add(name);
    if (named.size) gathering ??= setTimeout(gathered, GATHER);
  });
  opened.addEventListener("close", () => {
    if (opened !== socket) return;
    open = false;
    if (isPaused()) return;
    polling ??= setInterval(() => visible() && read(), POLL);
    setTimeout(() => !open && !isPaused() && show("lost"), MARK_AFTER);
    setTimeout(connect, pause * (0.7 + Math.random() * 0.6));
    pause = Math.min(pause * 2, POLL);
  });
}

// The first answer, and not the opening, tells that it works: who has been signed out is closed right after it.
function answered(missed) {
  open = true;
  pause = 500;
  clearInterval(polling);
  polling = undefined;
  show("open");
  if (missed) read();
}

// `age`: for how many seconds what the page shows may be out of date.
function watch(age = FRESH) {
  watching = undefined;
  const names = new Set([...document.querySelectorAll("[data-live]")].flatMap(namesOf));
  const list = [...names].slice(0, MOST);
  if (socket?.readyState !== WebSocket.OPEN || list.join() === watched) return;
  watched = list.join();
  socket.send(JSON.stringify({ watch: list, age }));
}

function namesOf(element) {
  return element.dataset.live.split(/\s+/).filter(Boolean);
}

function gathered() {
  gathering = undefined;
  const names = new Set(named);
  named.clear();
  if (visible()) read(names);
}

// Read again what carries one of `names`, or everything live. What lies inside another of them comes with it, and so
// does what another of them brings.
function read(names) {
  if (isPaused()) return;
  const chosen = [...document.querySelectorAll("[data-live][data-live-url]")].filter(
    (element) => !names || namesOf(element).some((name) => names.has(name)),
  );
  const brought = new Set(chosen.flatMap(broughtBy));
  for (const element of chosen) {
    if (brought.has(element) || chosen.some((other) => other !== element && other.contains(element))) continue;
    refresh(element);
  }
}

function broughtBy(element) {
  const ids = element.dataset.liveBrings?.split(" ") ?? [];
  return ids.map((id) => document.getElementById(id)).filter(Boolean);
}

async function refresh(element) {
  if (reading.has(element)) {
    reading.set(element, "again");
    return;
  }
  reading.set(element, "once");
  const said = new Map([element, ...broughtBy(element)].map((each) => [each, each.dataset.liveSays]));
  try {
    await htmx.ajax("GET", element.dataset.liveUrl, {
      source: element,
      target: element,
      swap: "outerMorph",
      live: true,
    });
  } finally {
    for (const [each, before] of said) {
      const now = each.isConnected ? each.dataset.liveSays : undefined;
      if (now && now !== before) document.dispatchEvent(new CustomEvent("announce", { detail: now }));
    }
    setTimeout(rested, REST, element);
  }
}

// However much changes, one part is not read all the time.
function rested(element) {
  const again = reading.get(element) === "again";
  reading.delete(element);
  if (again && element.isConnected) refresh(element);
}

function show(state) {
  document.documentElement.dataset.socket = state;
  if (!mark) return;
  mark.hidden = state === "open";
  mark.querySelector("span").textContent = mark.dataset[state];
}

function isPaused() {
  return document.body.dataset.follow === "off";
}

function visible() {
  return document.visibilityState === "visible";
}
