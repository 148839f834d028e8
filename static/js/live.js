// Keeps a page true. The socket brings names of changed things, never the things: whatever carries that name is
// read again from its own address, with the reader's own rights, and morphed into place.
//
//   <section data-live="run:ID" data-live-url="/runs/ID/timeline/" data-live-says="Waiting for you">
//
// data-live may hold several names. data-live-says is announced politely when a read changes it.

const POLL = 30_000;
const REREAD = 60_000;
const GATHER = 120;
const MARK_AFTER = 3_000;

const mark = document.querySelector("[data-live-mark]");
const reading = new WeakMap();
const named = new Set();
let socket;
let pause = 500;
let open = false;
let gathering;
let polling;

connect();
setInterval(() => visible() && read(), REREAD);
document.addEventListener("visibilitychange", () => visible() && read());
addEventListener("online", () => !open && connect());
addEventListener("pagehide", () => socket?.close());
addEventListener("pageshow", (event) => event.persisted && connect());

function connect() {
  if (socket && socket.readyState < WebSocket.CLOSING) return;
  const address = new URL(document.body.dataset.socket, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const opened = (socket = new WebSocket(address));
  let missed = Boolean(polling);
  opened.addEventListener("open", () => {
    open = true;
    pause = 500;
    clearInterval(polling);
    polling = undefined;
    show("open");
    if (missed) read();
  });
  opened.addEventListener("message", (event) => {
    const { changed = [] } = JSON.parse(event.data);
    for (const name of changed) named.add(name);
    gathering ??= setTimeout(gathered, GATHER);
  });
  opened.addEventListener("close", () => {
    if (opened !== socket) return;
    open = false;
    polling ??= setInterval(() => visible() && read(), POLL);
    setTimeout(() => !open && show("lost"), MARK_AFTER);
    setTimeout(connect, pause * (0.7 + Math.random() * 0.6));
    pause = Math.min(pause * 2, POLL);
  });
}

function gathered() {
  gathering = undefined;
  const names = new Set(named);
  named.clear();
  read(names);
}

// Read again what carries one of `names`, or everything live. What lies inside another of them comes with it.
function read(names) {
  const chosen = [...document.querySelectorAll("[data-live][data-live-url]")].filter(
    (element) => !names || element.dataset.live.split(/\s+/).some((name) => names.has(name)),
  );
  for (const element of chosen) {
    if (!chosen.some((other) => other !== element && other.contains(element))) refresh(element);
  }
}

async function refresh(element) {
  if (reading.has(element)) {
    reading.set(element, "again");
    return;
  }
  reading.set(element, "once");
  const said = element.dataset.liveSays;
  try {
    await htmx.ajax("GET", element.dataset.liveUrl, {
      source: element,
      target: element,
      swap: "outerMorph",
      live: true,
    });
  } finally {
    const again = reading.get(element) === "again";
    reading.delete(element);
    const now = element.isConnected ? element.dataset.liveSays : undefined;
    if (now && now !== said) document.dispatchEvent(new CustomEvent("announce", { detail: now }));
    if (again && element.isConnected) refresh(element);
  }
}

function show(state) {
  document.documentElement.dataset.socket = state;
  if (!mark) return;
  mark.hidden = state === "open";
  mark.querySelector("span").textContent = mark.dataset[state];
}

function visible() {
  return document.visibilityState === "visible";
}
