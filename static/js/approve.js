// The page of one approval: each part of it is a module of its own in approve/.

import { Bench } from "./approve/bench.js";
import { say } from "./approve/difference.js";
import { Kept, keepText } from "./approve/drafts.js";

function begin() {
  const form = document.querySelector("form[data-approve]");
  if (form && !form.bench) form.bench = new Bench(form);
  else form?.bench.mark();
  for (const done of document.querySelectorAll("[data-draft-done]")) {
    for (const what of ["draft", "kept:reason", "kept:words"]) new Kept(`${what}:${done.dataset.draftDone}`).forget();
  }
  for (const place of document.querySelectorAll("[data-kept-draft]")) showKept(place);
  for (const area of document.querySelectorAll("textarea[data-keep]")) keepText(area);
}

// What somebody typed before others decided, where it did not reach the server: shown, to be copied.
function showKept(place) {
  const unsent = new Kept(`draft:${place.dataset.keptDraft}`).unsent;
  if (!unsent?.json) return;
  say(place.querySelector("pre"), unsent.json);
  place.hidden = false;
}

document.addEventListener("htmx:after:swap", begin);
begin();
