// The form of a decision and its JSON: two views of one draft. The server reads either and is the judge of types; this
// module only shows at once what differs, keeps the draft through reloads, and adds and removes rows without a page.
//
// Every value stands in an element with data-field="$.to[0]" and data-kind; lists and objects hold others. A control
// that still says what it was given means the very value it was made from, so 1.0 stays 1.0.

const LONG = 80;
const MOST = 400;
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const WAIT = 350;

function begin() {
  const form = document.querySelector("form[data-approve]");
  if (form && !form.bench) form.bench = new Bench(form);
  else form?.bench.mark();
  for (const done of document.querySelectorAll("[data-draft-done]")) forget(`draft:${done.dataset.draftDone}`);
  for (const kept of document.querySelectorAll("[data-kept-draft]")) showKept(kept);
  for (const area of document.querySelectorAll("textarea[data-keep]")) keepText(area);
}

class Bench {
  constructor(form) {
    this.form = form;
    this.json = form.querySelector("[data-json]");
    this.proposed = parse(form.querySelector("#proposed-payload").textContent);
    this.store = `draft:${form.dataset.draft}`;
    this.rowCount = 0;
    form.addEventListener("input", (event) => this.typed(event.target));
    form.addEventListener("change", (event) => this.typed(event.target));
    form.addEventListener("click", (event) => this.pressed(event));
    document.addEventListener("click", (event) => this.pressedOutside(event));
    this.readBase();
    if ("posted" in form.dataset) this.keep();
    else this.restore();
    this.mark();
    this.focusTrouble();
  }

  // What the fields were made from: the proposed payload, or an edit of it that was typed as JSON.
  readBase() {
    const base = this.form.elements.base.value;
    this.base = base.trim() ? parse(base) : this.proposed;
    this.root = this.form.querySelector("[data-view=form] [data-field]");
  }

  get showsJson() {
    return this.form.elements.view.value === "json";
  }

  // -- what people do

  typed(target) {
    if (target.name === "view") return this.turn();
    if (target === this.json) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.fromJson(), WAIT);
    } else if (target.closest("[data-field]")) {
      this.forgive(target.closest("[data-field]"));
      const draft = read(this.root, this.base);
      this.json.value = text(draft);
      this.say();
    } else return undefined;
    this.keep();
    return this.mark();
  }

  turn() {
    if (!this.showsJson) return this.fromJson();
    this.json.style.removeProperty("block-size");
    return this.mark();
  }

  // JSON typed by hand is put into the fields by the server, which knows every kind.
  async fromJson() {
    clearTimeout(this.waiting);
    const sent = this.json.value;
    const answer = await this.preview({ view: "json", json: sent });
    if (!answer || this.json.value !== sent) return;
    this.take(answer);
    this.keep();
    this.mark();
  }

  pressed(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const field = button.closest("[data-field]");
    if ("add" in button.dataset) this.add(button);
    else if ("remove" in button.dataset) this.remove(button);
    else if ("putBack" in button.dataset) this.putBack(field);
    else return;
    event.preventDefault();
    this.forgive(field);
    this.typed(this.root);
  }

  pressedOutside(event) {
    const pressed = (selector) => event.target.closest(selector);
    const named = pressed("[data-to-field]");
    if (named) this.goTo(named, event);
    else if (pressed("[data-discard]")) this.discard();
    else if (pressed("[data-edit]")) {
      event.preventDefault();
      const first = this.showsJson ? this.json : this.root.querySelector("input:not([type=hidden]), textarea, select");
      (first ?? this.json).focus();
      first?.scrollIntoView({ block: "center" });
    } else if (pressed("[data-draft-use]")) {
      this.use(this.stale.json);
      pressed("[data-draft-stale]").hidden = true;
    } else if (pressed("[data-draft-drop]")) {
      forget(this.store);
      pressed("[data-draft-stale]").hidden = true;
    }
  }

  add(button) {
    const list = button.closest("[data-field]");
    const template = list.querySelector(":scope > template");
    const row = `n${this.freshRow()}`;
    const made = template.content.cloneNode(true);
    rename(made, template.dataset.fresh, row);
    list.querySelector(":scope > ul").append(made);
    list.querySelector(":scope > ul > li:last-child").querySelector("input:not([type=hidden]), textarea, select")?.focus();
  }

  // Server and script number added rows alike; none may get the number of another.
  freshRow() {
    const taken = [...this.form.querySelectorAll("li[data-row^=n]")].map((row) => Number(row.dataset.row.slice(1)));
    this.rowCount = Math.max(this.rowCount, 0, ...taken) + 1;
    return this.rowCount;
  }

  remove(button) {
    const row = button.closest("li[data-row]");
    const near = row.nextElementSibling ?? row.previousElementSibling;
    const place = near?.querySelector("input:not([type=hidden]), textarea, select") ?? row.closest("[data-field]").querySelector("[data-add]");
    row.remove();
    place?.focus();
  }

  putBack(field) {
    const value = get(this.proposed, field.dataset.field);
    const control = field.querySelector("input:not([type=hidden]), textarea, select");
    if (field.dataset.kind === "list" || !control) return this.discard();
    show(control, field, value);
    return control.focus();
  }

  discard() {
    forget(this.store);
    this.use(text(this.proposed), { kept: false });
  }

  async use(json, { kept = true } = {}) {
    const answer = await this.preview({ view: "json", json });
    if (!answer) return;
    this.json.value = json;
    this.take(answer);
    if (kept) this.keep();
    this.mark();
  }

  async preview(entries) {
    const body = new FormData();
    body.set("csrfmiddlewaretoken", this.form.elements.csrfmiddlewaretoken.value);
    for (const [name, value] of Object.entries(entries)) body.set(name, value);
    try {
      const answer = await fetch(this.form.dataset.preview, { method: "POST", body, headers: { "X-Requested-With": "fetch" } });
      return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : undefined;
    } catch {
      return undefined; // offline: the JSON stays as it was typed, and the server reads it when it is sent
    }
  }

  take(answer) {
    const error = answer.querySelector("[data-json-error]");
    this.say(error?.hidden ? "" : error?.textContent);
    if (error && !error.hidden) return;
    const fields = answer.querySelector("[data-view=form]");
    this.form.querySelector("[data-view=form]").replaceChildren(...fields.childNodes);
    this.form.elements.base.value = answer.querySelector("[name=base]").value;
    this.readBase();
    if (this.root.querySelector("[data-error]")) this.sayUnfit();
  }

  // -- what it shows

  say(error = "") {
    this.json.setAttribute("aria-invalid", Boolean(error));
    const told = this.form.querySelector("[data-json-error]");
    told.hidden = !error;
    told.textContent = error;
    const note = this.form.querySelector("[data-json-note]");
    note.textContent = error ? note.dataset.bad : note.dataset.good;
    note.dataset.tone = error ? "danger" : "good";
  }

  // What was wrong with a value is not said of another one; a list is another with each of its items.
  forgive(field) {
    for (let place = field; place && place !== this.root; place = place.parentElement.closest("[data-field]")) {
      for (const error of place.querySelectorAll(":scope > [data-error]")) error.remove();
    }
    for (const control of field.dataset.kind === "object" || field.dataset.kind === "list" ? [] : field.querySelectorAll("[aria-invalid=true]")) {
      control.removeAttribute("aria-invalid");
      const hint = document.getElementById(`${control.id}-hint`);
      if (hint) control.setAttribute("aria-describedby", hint.id);
      else control.removeAttribute("aria-describedby");
    }
  }

  // A field that the banner names is shown, whichever view is open.
  goTo(link, event) {
    const place = document.getElementById(link.hash.slice(1));
    if (!place) return;
    event.preventDefault();
    if (this.showsJson) {
      this.form.elements.view.value = "form";
      this.turn();
    }
    (place.matches("input, textarea, select") ? place : place.closest("[data-field]").querySelector("input:not([type=hidden]), textarea, select, button"))?.focus();
    place.scrollIntoView({ block: "center" });
  }

  // After a refusal one goes on where something is wrong.
  focusTrouble() {
    if (!document.querySelector("#trouble")) return;
    const wrong = [...document.querySelectorAll("[aria-invalid=true]")].find((each) => each.checkVisibility());
    const first = wrong ?? (this.showsJson && this.form.querySelector("[data-error]") ? this.json : undefined);
    first?.focus();
    first?.scrollIntoView({ block: "center" });
  }

  sayUnfit() {
    const note = this.form.querySelector("[data-json-note]");
    note.textContent = note.dataset.unfit;
    note.dataset.tone = "danger";
  }

  get draft() {
    return read(this.root, this.base);
  }

  get isEdited() {
    if (this.json.getAttribute("aria-invalid") === "true") return true;
    return canonical(this.draft) !== canonical(this.proposed);
  }

  mark() {
    if (!this.form.isConnected) return;
    let count = 0;
    for (const field of this.root.parentElement.querySelectorAll("[data-field]:not([data-kind=object])")) {
      const was = get(this.proposed, field.dataset.field);
      const is = read(field, this.base);
      const changed = canonical(was) !== canonical(is);
      if (changed && !field.parentElement.closest("[data-kind=list]")) count += 1;
      this.markField(field, changed, was, is);
    }
    const differs = this.isEdited;
    if (differs && !count) count = 1;
    for (const label of document.querySelectorAll("[data-approve-label]")) say(label, differs ? label.dataset.edited : label.dataset.plain);
    for (const note of document.querySelectorAll("[data-change-count]")) {
      say(note, count === 0 ? "" : count === 1 ? note.dataset.one : note.dataset.many.replace("%s", count));
    }
    for (const element of document.querySelectorAll("[data-discard]")) element.hidden = !differs;
    for (const element of document.querySelectorAll("[data-draft-note]")) element.hidden = !differs;
    for (const place of document.querySelectorAll("[data-draft-time]")) say(place, this.keptAt ?? "");
    for (const element of document.querySelectorAll("[data-shows]")) this.showOutcome(element);
  }

  markField(field, changed, was, is) {
    // A mark that still fits stays: a press on its button begins with the change event of the field left behind.
    const state = changed ? canonical(is) : "";
    if (field.marked === state) return;
    field.marked = state;
    field.toggleAttribute("data-changed", changed);
    for (const old of field.querySelectorAll(":scope > [data-made], :scope > .field-head > [data-made], :scope > label [data-made]")) old.remove();
    if (!changed) return;
    const { changed: word, putBack, diffTitle } = this.form.dataset;
    const head = field.querySelector(":scope > .field-head") ?? field.querySelector(":scope > label > span");
    if (!head) return;
    const name = head.querySelector("label, .label")?.textContent ?? head.firstChild?.textContent.trim() ?? "";
    head.append(made("span", { class: "tag", "data-tone": "accent" }, word));
    if (!field.matches("[data-kind=boolean], [data-kind=list]") && was !== undefined) {
      head.append(made("button", { class: "link", type: "button", "data-put-back": "", "aria-label": `${putBack} ${name}` }, putBack));
    }
    if (field.dataset.kind === "boolean") return;
    if (areScalars(was) && areScalars(is)) {
      field.append(made("p", { class: "change" }, ...itemPieces(was, is)));
      return;
    }
    const title = diffTitle.replace("%s", name);
    field.append(areLong(was, is) ? wordDiff(lines(was), lines(is), title, this.form.dataset) : change(short(was, is), short(is, was), this.form.dataset));
  }

  // Where the outcome names a value, it names the edited one beside it.
  showOutcome(element) {
    const [was, is] = [get(this.proposed, element.dataset.shows), this.valueOf(element.dataset.shows)];
    this.shown ??= new Map();
    if (!this.shown.has(element)) {
      // After a refusal the server shows the edit, and holds in a template what stands without it.
      const unedited = element.querySelector(":scope > template")?.content ?? element;
      this.shown.set(element, [...unedited.childNodes]);
    }
    const state = canonical(was) === canonical(is) ? "" : canonical(is) ?? "gone";
    if (element.marked === state) return;
    element.marked = state;
    if (!state) return element.replaceChildren(...this.shown.get(element));
    const title = this.form.dataset.diffTitle.replace("%s", element.closest("dd").previousElementSibling.textContent);
    const differs = (old, fresh) => wordDiff(lines(old), lines(fresh), title, this.form.dataset);
    if (areLong(was, is)) element.replaceChildren(differs(was, is));
    else if (areScalars(was) && areScalars(is)) element.replaceChildren(make("ul", {}, ...itemPieces(was, is).map((item) => make("li", {}, item))));
    else if (isCut(was) && isCut(is)) element.replaceChildren(differs(text(was), text(is)));
    else element.replaceChildren(make("del", {}, short(was, is)), " ", make("ins", {}, short(is, was)));
  }

  valueOf(name) {
    return get(this.draft, name);
  }

  // -- the draft that survives a reload

  keep() {
    if (!this.isEdited) {
      forget(this.store);
      return;
    }
    const kept = { table: this.form.dataset.table, json: this.json.value };
    localStorage.setItem(this.store, JSON.stringify(kept));
    this.keptAt = new Date().toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  }

  // A draft for this text comes back by itself; one for an older text is offered, never put in.
  restore() {
    const kept = JSON.parse(localStorage.getItem(this.store) ?? "null");
    if (!kept) return undefined;
    if (kept.table === this.form.dataset.table) return this.use(kept.json);
    this.stale = kept;
    const offer = this.form.querySelector("[data-draft-stale]");
    offer.querySelector("[data-draft-text]").textContent = kept.json;
    offer.hidden = false;
    return undefined;
  }
}

function forget(name) {
  localStorage.removeItem(name);
}

// What somebody typed before others decided: shown, to be copied.
function showKept(place) {
  const kept = JSON.parse(localStorage.getItem(`draft:${place.dataset.keptDraft}`) ?? "null");
  if (!kept) return;
  say(place.querySelector("pre"), kept.json);
  place.hidden = false;
}

// A textarea with data-keep="name" survives a reload.
function keepText(area) {
  if (area.kept) return;
  area.kept = true;
  const name = `kept:${area.dataset.keep}`;
  if (!area.value) area.value = localStorage.getItem(name) ?? "";
  area.addEventListener("input", () => localStorage.setItem(name, area.value));
  area.form?.addEventListener("submit", () => localStorage.removeItem(name));
}

// -- values in the page

// The value that an element with data-field stands for; undefined where there is none.
function read(field, base) {
  const { kind } = field.dataset;
  const inner = [...field.querySelectorAll("[data-field]")].filter((each) => each.parentElement.closest("[data-field]") === field);
  if (kind === "list") return inner.map((each) => read(each, base) ?? null);
  if (kind === "object") {
    const pairs = inner.map((each) => [JSON.parse(each.dataset.key), read(each, base)]).filter(([, value]) => value !== undefined);
    return Object.fromEntries(pairs);
  }
  if (kind === "fixed") return field.querySelector("[data-value]").dataset.value ? parse(field.querySelector("[data-value]").dataset.value) : undefined;
  const control = field.querySelector("input:not([type=hidden]), textarea, select");
  const was = get(base, field.dataset.field);
  const value = typed(control, field, was);
  return canonical(value) === canonical(was) ? was : value;
}

function typed(control, field, was) {
  const { kind } = field.dataset;
  const source = control.value;
  if (kind === "boolean") return control.checked;
  if (kind === "choice") return source === "" ? nothing(field, was) : control.dataset.tokens === "json" ? parse(source) : source;
  if (kind === "json") return source.trim() === "" ? nothing(field, was) : attempt(source);
  if (field.dataset.wrap) return { ...parse(field.dataset.wrap), v: source };
  if (kind === "integer" || kind === "number") {
    if (source.trim() === "") return nothing(field, was);
    return NUMBER.test(source.trim()) ? attempt(source.trim().replace(/^\+/, "")) : source;
  }
  if (kind === "moment") return moment(source, field, was);
  if (kind === "date") return source === "" ? nothing(field, was) : source;
  if (source === "" && (was === null || was === undefined)) return "nullable" in field.dataset ? null : "optional" in field.dataset ? undefined : "";
  if (typeof was === "string" && lines(was) === source) return was;
  return typeof was === "string" && was.includes("\r\n") ? source.replaceAll("\n", "\r\n") : source;
}

function moment(source, field, was) {
  if (source === "") return nothing(field, was);
  const [, clock, zone] = /^(.*?)(Z|[+-]\d\d:\d\d)?$/.exec(typeof was === "string" ? was : "Z");
  const full = source.length === 16 ? `${source}:00` : source;
  return clock === source || clock === full || clock === source.slice(0, 16) && full.endsWith(":00") ? was : `${full}${zone ?? ""}`;
}

function nothing(field, was) {
  if ("nullable" in field.dataset) return null;
  return was === undefined || "optional" in field.dataset ? undefined : "";
}

function attempt(source) {
  try {
    return parse(source);
  } catch {
    return source;
  }
}

// Write a value into a control, as the server would print it.
function show(control, field, value) {
  if (field.dataset.kind === "boolean") control.checked = value === true;
  else if (field.dataset.wrap) control.value = value?.v ?? "";
  else if (field.dataset.kind === "moment") control.value = (value ?? "").replace(/(Z|[+-]\d\d:\d\d)$/, "");
  else if (field.dataset.kind === "json" || control.dataset.tokens === "json") control.value = value === undefined ? "" : text(value);
  else control.value = value === undefined || value === null ? "" : typeof value === "string" ? value : text(value);
}

// Give a copied row its own names; only attributes that hold names are touched.
function rename(fragment, old, row) {
  for (const element of fragment.querySelectorAll("*")) {
    for (const name of ["name", "id", "for", "value", "data-field", "data-row", "aria-labelledby", "aria-describedby"]) {
      const held = element.getAttribute(name);
      if (held?.includes(old)) element.setAttribute(name, held.replaceAll(old, row));
      if (held?.includes(".40")) element.setAttribute(name, held.replaceAll(`.40${old.slice(1)}`, row));
    }
    if (element.matches("template")) rename(element.content, old, row);
  }
}

// -- paths: $.to[0].name, $["odd key"], and rows that were added: $.to[n1]

function steps(name) {
  const found = name.slice(1).matchAll(/\.([A-Za-z_][\w-]*)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]|\[([^\]]*)\]/g);
  return [...found].map(([, word, quoted, index, row]) => word ?? (quoted ? JSON.parse(quoted) : index === undefined ? { row } : Number(index)));
}

function get(value, name) {
  return steps(name).reduce((inner, step) => {
    if (inner === null || inner === undefined || typeof step === "object") return undefined;
    return Object.hasOwn(inner, step) ? inner[step] : undefined;
  }, value);
}

// -- JSON that keeps the digits of its numbers (1.0, 2**200) where the browser can tell us them

function parse(source) {
  return JSON.parse(source, (key, value, context) =>
    typeof value === "number" && context?.source && JSON.rawJSON && String(value) !== context.source ? JSON.rawJSON(context.source) : value,
  );
}

function text(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value && typeof value === "object" && !JSON.isRawJSON?.(value)) {
    return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
  }
  return JSON.stringify(value);
}

function lines(value) {
  return value.replaceAll("\r\n", "\n");
}

// -- what differs

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function made(name, attributes, ...children) {
  return make(name, { ...attributes, "data-made": "" }, ...children);
}

function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function short(value, other) {
  if (value === undefined) return "–";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object" || JSON.isRawJSON?.(each))) {
    return value.map((each) => (typeof each === "string" ? each : text(each))).join(", ") || "[]";
  }
  const words = typeof value === "string" && (typeof other === "string" || other === undefined) && value !== "" ? value : text(value);
  return words.length > MOST ? `${words.slice(0, MOST - 2)}…` : words;
}

// Whether only a part of it would be shown, so that two of them may look alike.
function isCut(value) {
  return value !== undefined && text(value).length > MOST;
}

function areLong(was, is) {
  return typeof was === "string" && typeof is === "string" && (Math.max(was.length, is.length) > LONG || `${was}${is}`.includes("\n"));
}

function change(was, is, { becomes }) {
  return made("p", { class: "change" }, make("del", {}, was), make("span", { "aria-hidden": "true" }, "→"), make("span", { class: "hidden-visually" }, becomes), make("ins", {}, is));
}

function areScalars(value) {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each !== "object" || JSON.isRawJSON?.(each));
}

// A short list item by item, so that one gone address is seen among those that stay.
function itemPieces(was, is) {
  const told = (value) => (typeof value === "string" && value.trim() ? value : text(value));
  return difference(was.map(told), is.map(told)).flatMap(([kind, old, fresh]) =>
    kind === "same" ? old.map((each) => make("span", {}, each)) : [...old.map((each) => make("del", {}, each)), ...fresh.map((each) => make("ins", {}, each))],
  );
}

function wordDiff(was, is, title, { unchanged, unchangedOne }) {
  const box = made("div", { class: "word-diff", role: "group", "aria-label": title });
  for (const [kind, old, fresh] of difference(was.split("\n"), is.split("\n"))) {
    if (kind === "same") {
      const many = old.filter((line) => line.trim()).length;
      if (many) box.append(make("p", { class: "fold" }, many === 1 ? unchangedOne : unchanged.replace("%s", many)));
      continue;
    }
    for (let index = 0; index < Math.max(old.length, fresh.length); index += 1) {
      if (old[index] || fresh[index]) box.append(make("p", {}, ...wordPieces(old[index] ?? "", fresh[index] ?? "")));
    }
  }
  return box;
}

function wordPieces(was, is) {
  const pieces = [];
  let [gone, came] = ["", ""];
  const flush = () => {
    if (gone) pieces.push(make("del", {}, gone));
    if (came) pieces.push(gone ? " " : "", make("ins", {}, came));
    [gone, came] = ["", ""];
  };
  const blocks = difference(words(was), words(is));
  for (const [index, [kind, old, fresh]] of blocks.entries()) {
    const crumb = kind === "same" && old.join("").trim().length < 2 && (gone || came) && index < blocks.length - 1;
    if (kind === "same" && !crumb) {
      flush();
      pieces.push(old.join(""));
    } else {
      gone += old.join("");
      came += fresh.join("");
    }
  }
  flush();
  return pieces;
}

function words(line) {
  return line.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

// Longest common subsequence, as blocks of ["same", a, a] and ["other", removed, added].
function difference(a, b) {
  if (a.length * b.length > 4_000_000) return [["other", a, b]];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const blocks = [];
  const last = (kind) => {
    if (blocks.at(-1)?.[0] !== kind) blocks.push([kind, [], []]);
    return blocks.at(-1);
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      const block = last("same");
      block[1].push(a[i++]);
      block[2].push(b[j++]);
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) last("other")[1].push(a[i++]);
    else last("other")[2].push(b[j++]);
  }
  return blocks;
}

// Last, for a class exists only below its line.
document.addEventListener("htmx:after:swap", begin);
begin();
