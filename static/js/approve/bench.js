// The form of a decision and its JSON: two views of one draft. The server reads either and is the judge of types; this
// class only shows at once what differs, and keeps the draft.

import { say } from "./difference.js";
import { Kept } from "./drafts.js";
import { canonical, parse, text } from "./json.js";
import { forgive, markField, showOutcome } from "./marks.js";
import { get } from "./paths.js";
import { addRow, removeRow } from "./rows.js";
import { read, show } from "./values.js";

const WAIT = 350;
const CONTROL = "input:not([type=hidden]), textarea, select";

export class Bench {
  constructor(form) {
    this.form = form;
    this.json = form.querySelector("[data-json]");
    this.proposed = parse(form.querySelector("#proposed-payload").textContent);
    this.kept = new Kept(`draft:${form.dataset.draft}`, form.dataset.keptUrl);
    this.keptAt = form.dataset.keptAt ? clock(new Date(form.dataset.keptAt)) : "";
    this.unedited = new Map();
    this.strokes = 0;
    form.addEventListener("input", (event) => {
      this.strokes += 1;
      this.typed(event.target);
    });
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

  get draft() {
    return read(this.root, this.base);
  }

  get isEdited() {
    if (this.json.getAttribute("aria-invalid") === "true") return true;
    return canonical(this.draft) !== canonical(this.proposed);
  }

  // -- what people do

  typed(target) {
    if (target.name === "view") {
      this.turn();
      return;
    }
    if (target === this.json) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.fromJson(), WAIT);
    } else if (target.closest("[data-field]")) {
      forgive(this.root, target.closest("[data-field]"));
      this.json.value = text(this.draft);
      this.say();
    } else {
      return;
    }
    this.keep();
    this.mark();
  }

  turn() {
    if (!this.showsJson) {
      this.fromJson();
      return;
    }
    this.json.style.removeProperty("block-size");
    this.mark();
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
    if ("add" in button.dataset) addRow(this.form, button);
    else if ("remove" in button.dataset) removeRow(button);
    else if ("putBack" in button.dataset) this.putBack(field);
    else return;
    event.preventDefault();
    forgive(this.root, field);
    this.typed(this.root);
  }

  pressedOutside(event) {
    const pressed = (selector) => event.target.closest(selector);
    const named = pressed("[data-to-field]");
    if (named) this.goTo(named, event);
    else if (pressed("[data-discard]")) this.discard();
    else if (pressed("[data-edit]")) this.goToFirst(event);
    else if (pressed("[data-draft-use]")) this.useStale(event);
    else if (pressed("[data-draft-drop]")) this.dropStale(event);
  }

  putBack(field) {
    const control = field.querySelector(CONTROL);
    if (field.dataset.kind === "list" || !control) {
      this.discard();
      return;
    }
    show(control, field, get(this.proposed, field.dataset.field));
    control.focus();
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
    (place.matches("input, textarea, select") ? place : place.closest("[data-field]").querySelector(`${CONTROL}, button`))?.focus();
    place.scrollIntoView({ block: "center" });
  }

  goToFirst(event) {
    event.preventDefault();
    const first = this.showsJson ? this.json : this.root.querySelector(CONTROL);
    (first ?? this.json).focus();
    first?.scrollIntoView({ block: "center" });
  }

  // After a refusal one goes on where something is wrong.
  focusTrouble() {
    if (!document.querySelector("#trouble")) return;
    const wrong = [...document.querySelectorAll("[aria-invalid=true]")].find((each) => each.checkVisibility());
    const first = wrong ?? (this.showsJson && this.form.querySelector("[data-error]") ? this.json : undefined);
    first?.focus();
    first?.scrollIntoView({ block: "center" });
  }

  // -- the server puts a text of JSON into fields

  async use(json) {
    const strokes = this.strokes;
    const answer = await this.preview({ view: "json", json });
    if (!answer || strokes !== this.strokes) return; // what was typed meanwhile stays
    this.json.value = json;
    this.take(answer);
    this.keep();
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
    if (!this.root.querySelector("[data-error]")) return;
    const note = this.form.querySelector("[data-json-note]");
    note.textContent = note.dataset.unfit;
    note.dataset.tone = "danger";
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

  mark() {
    if (!this.form.isConnected) return;
    let count = 0;
    for (const field of this.root.parentElement.querySelectorAll("[data-field]:not([data-kind=object], [data-plain])")) {
      const was = get(this.proposed, field.dataset.field);
      const is = read(field, this.base);
      const changed = canonical(was) !== canonical(is);
      if (changed && !field.parentElement.closest("[data-kind=list]")) count += 1;
      markField(field, changed, was, is, this.form.dataset);
    }
    const [differs, draft] = [this.isEdited, this.draft];
    if (differs && !count) count = 1;
    for (const label of document.querySelectorAll("[data-approve-label]")) say(label, differs ? label.dataset.edited : label.dataset.plain);
    for (const note of document.querySelectorAll("[data-change-count]")) {
      say(note, count === 0 ? "" : count === 1 ? note.dataset.one : note.dataset.many.replace("%s", count));
    }
    for (const element of document.querySelectorAll("[data-discard], [data-draft-note]")) element.hidden = !differs;
    for (const place of document.querySelectorAll("[data-draft-time]")) say(place, this.keptAt);
    for (const element of document.querySelectorAll("[data-shows]")) {
      const name = element.dataset.shows;
      showOutcome(element, get(this.proposed, name), get(draft, name), this.form.dataset, this.unedited);
    }
  }

  // -- the draft that survives

  keep() {
    const json = this.isEdited ? this.json.value : "";
    if (!json && !this.keptAt) return;
    this.kept.put({ json, table: this.form.dataset.table });
    this.keptAt = clock(new Date());
  }

  // The server has put in what it keeps. What did not reach it comes back by itself if it is for this text; what is
  // for an older one is offered, never put in.
  restore() {
    const unsent = this.kept.unsent;
    if (!unsent) return;
    if (unsent.table === this.form.dataset.table) {
      this.keptAt = clock(new Date());
      this.use(unsent.json || text(this.proposed));
    } else if (unsent.json) {
      const offer = document.querySelector("[data-draft-stale]");
      offer.querySelector("[data-draft-text]").textContent = unsent.json;
      offer.querySelector("[data-draft-json]").value = unsent.json;
      offer.hidden = false;
    }
  }

  discard() {
    this.use(text(this.proposed));
  }

  useStale(event) {
    event.preventDefault();
    const offer = document.querySelector("[data-draft-stale]");
    this.use(offer.querySelector("[data-draft-json]").value);
    offer.hidden = true;
  }

  dropStale(event) {
    event.preventDefault();
    this.kept.put({ json: "", table: "" });
    document.querySelector("[data-draft-stale]").hidden = true;
  }
}

function clock(moment) {
  return moment.toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}
