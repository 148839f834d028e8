// What was typed and not sent is kept on the server, for this person on every device. What has not reached it yet
// stays in this browser, so that neither a reload nor a lost line loses a word.

const PAUSE = 800;
const MOST_AT_LEAVING = 60_000; // bytes that a browser sends for a page that goes away

const waiting = new Set();
addEventListener("pagehide", () => {
  for (const kept of waiting) kept.send(true);
});

export class Kept {
  // name: of the copy in this browser; url: where it is kept.
  constructor(name, url) {
    this.name = name;
    this.url = url;
  }

  // What this browser has and the page does not show: entries by name; undefined if there is none. What was kept after
  // the page's rows were read came too late for it.
  get unsent() {
    const held = JSON.parse(localStorage.getItem(this.name) ?? "null");
    const read = Date.parse(shownAt());
    if (held?.sentAt && Date.parse(held.sentAt) < read) localStorage.removeItem(this.name);
    else if (held) return held.entries;
    return undefined;
  }

  put(entries) {
    localStorage.setItem(this.name, JSON.stringify({ entries }));
    waiting.add(this);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), PAUSE);
  }

  // The decision carries it, or nobody wants it any more.
  forget() {
    clearTimeout(this.timer);
    waiting.delete(this);
    localStorage.removeItem(this.name);
  }

  // A form carries it. Whether that arrives the next page tells; until then it stays in this browser alone.
  posted() {
    clearTimeout(this.timer);
    waiting.delete(this);
    const held = JSON.parse(localStorage.getItem(this.name) ?? "null");
    if (held) localStorage.setItem(this.name, JSON.stringify({ ...held, postedAt: shownAt() }));
  }

  // What a form carried has arrived, for the server has it since (said).
  settle(said) {
    const held = JSON.parse(localStorage.getItem(this.name) ?? "null");
    if (held?.postedAt && Date.parse(said) > Date.parse(held.postedAt)) this.forget();
  }

  async send(leaving = false) {
    clearTimeout(this.timer);
    const held = localStorage.getItem(this.name);
    if (held === null || (leaving && held.length > MOST_AT_LEAVING)) return;
    const { entries } = JSON.parse(held);
    const body = new URLSearchParams(entries);
    body.set("csrfmiddlewaretoken", document.querySelector("meta[name=csrf-token]").content);
    try {
      const answer = await fetch(this.url, { method: "POST", body, keepalive: leaving });
      const sentAt = answer.ok && answer.headers.get("Kept-At");
      if (!sentAt || localStorage.getItem(this.name) !== held) return;
      localStorage.setItem(this.name, JSON.stringify({ entries, sentAt }));
      waiting.delete(this);
    } catch {
      // offline: it stays here, and goes with the next word or visit
    }
  }
}

// When the server read what the page shows.
function shownAt() {
  return document.getElementById("approval-state")?.dataset.read;
}

// A textarea with data-keep="reason:..." comes back with what was typed into it, also where signing in came between.
export function keepText(area) {
  if (area.kept) return;
  const [field] = area.dataset.keep.split(":");
  area.kept = new Kept(`kept:${area.dataset.keep}`, area.dataset.keptUrl);
  area.kept.settle(area.dataset.saidAt);
  const unsent = area.kept.unsent?.[field];
  if (unsent !== undefined && area.value !== unsent) {
    area.value = unsent;
    area.kept.put({ [field]: unsent });
  }
  area.addEventListener("input", () => area.kept.put({ [field]: area.value }));
  area.form?.addEventListener("submit", () => area.kept.posted());
}
