// Marks of what differs: at each field, and where the outcome names its value.

import { areLong, areScalars, change, isCut, itemPieces, made, make, short, wordDiff } from "./difference.js";
import { canonical, lines, text } from "./json.js";

// `words`: the form's data, which holds the words in the page's language.
export function markField(field, changed, was, is, words) {
  // A mark that still fits stays: a press on its button begins with the change event of the field left behind.
  const state = changed ? canonical(is) : "";
  if (field.marked === state) return;
  field.marked = state;
  field.toggleAttribute("data-changed", changed);
  for (const old of field.querySelectorAll(":scope > [data-made], :scope > .field-head > [data-made], :scope > label [data-made]")) old.remove();
  if (!changed) return;
  const { changed: word, putBack, diffTitle } = words;
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
  field.append(areLong(was, is) ? wordDiff(lines(was), lines(is), title, words) : change(short(was, is), short(is, was), words));
}

// Where the outcome names a value, it names the edited one beside it. `unedited` remembers what stood there.
export function showOutcome(element, was, is, words, unedited) {
  if (!unedited.has(element)) {
    // After a refusal the server shows the edit, and holds in a template what stands without it.
    const shown = element.querySelector(":scope > template")?.content ?? element;
    unedited.set(element, [...shown.childNodes]);
  }
  const state = canonical(was) === canonical(is) ? "" : canonical(is) ?? "gone";
  if (element.marked === state) return;
  element.marked = state;
  if (!state) {
    element.replaceChildren(...unedited.get(element));
    return;
  }
  const title = words.diffTitle.replace("%s", element.closest("dd").previousElementSibling.textContent);
  const differs = (old, fresh) => wordDiff(lines(old), lines(fresh), title, words);
  if (areLong(was, is)) element.replaceChildren(differs(was, is));
  else if (areScalars(was) && areScalars(is)) element.replaceChildren(make("ul", {}, ...itemPieces(was, is).map((item) => make("li", {}, item))));
  else if (isCut(was) && isCut(is)) element.replaceChildren(differs(text(was), text(is)));
  else element.replaceChildren(make("del", {}, short(was, is)), " ", make("ins", {}, short(is, was)));
}

// What was wrong with a value is not said of another one; a list is another with each of its items.
export function forgive(root, field) {
  for (let place = field; place && place !== root; place = place.parentElement.closest("[data-field]")) {
    for (const error of place.querySelectorAll(":scope > [data-error]")) error.remove();
  }
  for (const control of field.dataset.kind === "object" || field.dataset.kind === "list" ? [] : field.querySelectorAll("[aria-invalid=true]")) {
    control.removeAttribute("aria-invalid");
    const hint = document.getElementById(`${control.id}-hint`);
    if (hint) control.setAttribute("aria-describedby", hint.id);
    else control.removeAttribute("aria-describedby");
  }
}
