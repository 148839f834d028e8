// Selecting approvals in the list, to decide them together: x, shift-click for all between, Escape for none. Without it
// the boxes and their form work the same.

const BOX = "input[data-pick]";
let last;

document.addEventListener("click", (event) => {
  const box = event.target.closest(BOX);
  if (box) {
    if (event.shiftKey && last?.isConnected && last !== box) selectBetween(last, box);
    last = box;
    tell();
  } else if (event.target.closest("[data-pick-all]")) {
    const some = boxes().some((each) => !each.checked);
    for (const each of boxes()) each.checked = some;
    tell();
  }
});

document.addEventListener("reset", (event) => event.target.id === "picked" && setTimeout(tell));

// The row under the focus, or the one that is open beside the list.
document.addEventListener("key", (event) => {
  if (event.detail.toLowerCase() !== "x") return;
  const row = document.activeElement.closest(".inbox-row") ?? document.querySelector(".inbox-row:has(> [aria-current])");
  const box = row?.querySelector(BOX);
  if (!box) return;
  event.preventDefault();
  if (event.detail === "X" && last?.isConnected && last !== box) selectBetween(last, box, true);
  else box.checked = !box.checked;
  last = box;
  tell();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(":popover-open")) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select") || !boxes().some((each) => each.checked)) return;
  for (const each of boxes()) each.checked = false;
  tell();
});

document.addEventListener("htmx:after:swap", () => boxes().some((each) => each.checked) && tell(false));
for (const button of document.querySelectorAll("[data-pick-all]")) button.hidden = false;
tell(false); // the browser may have kept boxes ticked over a reload

function boxes() {
  return [...document.querySelectorAll(BOX)];
}

function selectBetween(from, to, checked = to.checked) {
  const all = boxes();
  const [start, end] = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  for (const each of all.slice(start, end + 1)) each.checked = checked;
}

function tell(aloud = true) {
  const bar = document.getElementById("picked");
  if (!bar) return;
  const words = bar.dataset.picked.replace("%s", boxes().filter((each) => each.checked).length);
  if (aloud) document.dispatchEvent(new CustomEvent("announce", { detail: words }));
}
