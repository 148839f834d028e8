// Single keys: <a data-key="j">, <button data-key="a">, <input data-key="/">. A press is a click, or focus for a field.
// Where no link carries j or k, they move along the links marked data-key-row. Never while typing (Escape leaves the
// field), never with a modifier, never under an open popover; off when <body data-keys="off"> or so chosen in this browser.

const FIELDS = "input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select";

if (localStorage.getItem("keys") === "off") document.body.dataset.keys = "off";

document.addEventListener("keydown", (event) => {
  if (document.body.dataset.keys === "off" || event.defaultPrevented || event.repeat) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const shown = document.querySelector(":popover-open");
  if (event.key === "Escape" && !shown && event.target.matches(FIELDS)) event.target.blur();
  if (event.target.closest(`${FIELDS}, [contenteditable]`)) return;
  if (event.key === "?") {
    event.preventDefault();
    document.getElementById("keys")?.togglePopover();
  } else if (!shown && press(event.key)) {
    event.preventDefault();
  }
});

function press(key) {
  const element = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find(
    (e) => e.checkVisibility() && !e.disabled,
  );
  if (element?.matches(FIELDS)) {
    element.focus();
    element.select?.();
  } else if (element) {
    element.click();
  }
  return Boolean(element) || along({ j: 1, k: -1 }[key]) || taken(key);
}

// Another module may take a key: it hears "key" on document, and prevents the event.
function taken(key) {
  return !document.dispatchEvent(new CustomEvent("key", { detail: key, cancelable: true }));
}

function along(way) {
  if (!way) return false;
  const rows = [...document.querySelectorAll("[data-key-row]")].filter((row) => row.checkVisibility());
  const at = rows.findIndex((row) => row === document.activeElement || row.ariaCurrent === "true");
  const next = rows[at < 0 ? 0 : at + way];
  next?.focus();
  return Boolean(next);
}
