// Rows of a list come and go without a page. Server and script number added rows alike; none may get another's number.

import { rename } from "./values.js";

const CONTROL = "input:not([type=hidden]), textarea, select";

export function addRow(form, button) {
  const list = button.closest("[data-field]");
  const template = list.querySelector(":scope > template");
  const made = template.content.cloneNode(true);
  rename(made, template.dataset.fresh, `n${freshRow(form)}`);
  list.querySelector(":scope > ul").append(made);
  list.querySelector(":scope > ul > li:last-child").querySelector(CONTROL)?.focus();
}

export function removeRow(button) {
  const row = button.closest("li[data-row]");
  const near = row.nextElementSibling ?? row.previousElementSibling;
  const place = near?.querySelector(CONTROL) ?? row.closest("[data-field]").querySelector("[data-add]");
  row.remove();
  place?.focus();
}

function freshRow(form) {
  const taken = [...form.querySelectorAll("li[data-row^=n]")].map((row) => Number(row.dataset.row.slice(1)));
  form.rowCount = Math.max(form.rowCount ?? 0, 0, ...taken) + 1;
  return form.rowCount;
}
