// Values in the page: every one stands in an element with data-field="$.to[0]" and data-kind; lists and objects hold
// others. A control that still says what it was given means the very value it was made from, so 1.0 stays 1.0.

import { canonical, lines, parse, text } from "./json.js";
import { get } from "./paths.js";

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

// The value that an element with data-field stands for; undefined where there is none.
export function read(field, base) {
  const { kind } = field.dataset;
  const inner = [...field.querySelectorAll("[data-field]")].filter((each) => each.parentElement.closest("[data-field]") === field);
  if (kind === "list") return inner.map((each) => read(each, base) ?? null);
  if (kind === "object") {
    const pairs = inner.map((each) => [JSON.parse(each.dataset.key), read(each, base)]).filter(([, value]) => value !== undefined);
    return Object.fromEntries(pairs);
  }
  if (kind === "fixed") return field.querySelector("[data-value]").dataset.value ? parse(field.querySelector("[data-value]").dataset.value) : undefined;
  const control = field.querySelector("[type=radio]:checked") ?? field.querySelector("input:not([type=hidden]), textarea, select");
  const was = get(base, field.dataset.field);
  const value = typed(control, field, was);
  return canonical(value) === canonical(was) ? was : value;
}

function typed(control, field, was) {
  const { kind } = field.dataset;
  const source = control.type === "radio" && !control.checked ? "" : control.value;
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
export function show(control, field, value) {
  if (field.dataset.kind === "boolean") control.checked = value === true;
  else if (field.dataset.wrap) control.value = value?.v ?? "";
  else if (field.dataset.kind === "moment") control.value = (value ?? "").replace(/(Z|[+-]\d\d:\d\d)$/, "");
  else if (field.dataset.kind === "json" || control.dataset.tokens === "json") control.value = value === undefined ? "" : text(value);
  else control.value = value === undefined || value === null ? "" : typeof value === "string" ? value : text(value);
}

// Give a copied row its own names; only attributes that hold names are touched.
export function rename(fragment, old, row) {
  for (const element of fragment.querySelectorAll("*")) {
    for (const name of ["name", "id", "for", "value", "data-field", "data-row", "aria-labelledby", "aria-describedby"]) {
      const held = element.getAttribute(name);
      if (held?.includes(old)) element.setAttribute(name, held.replaceAll(old, row));
      if (held?.includes(".40")) element.setAttribute(name, held.replaceAll(`.40${old.slice(1)}`, row));
    }
    if (element.matches("template")) rename(element.content, old, row);
  }
}
