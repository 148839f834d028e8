// What every page has: requests that carry the token, morphs that keep what a person did, notices.
// Other modules speak through events on document: "toast" and "announce", each with a text as its detail.

const body = document.body;
const BUSY_AFTER = 1_000;
const GIVE_UP = 15_000;
const FOCUSED = "a[href], button, input:not([type=hidden]), select, textarea";

document.addEventListener("htmx:config:request", (event) => {
  const { request } = event.detail.ctx;
  if (request.method === "GET") return;
  request.headers["X-CSRFToken"] = document.querySelector("meta[name=csrf-token]").content;
});

// A form may be answered with its own errors (409, 422). Any other failure leaves the page as it is and says so.
document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  const answer = ctx.response?.raw;
  if (!answer) return;
  if (answer.redirected && new URL(answer.url).pathname === body.dataset.login) {
    event.preventDefault();
    toast(body.dataset.signedOut, "danger");
  } else if (answer.status >= 400 && ![409, 422].includes(answer.status)) {
    event.preventDefault();
    if (!ctx.live) toast(failure(ctx.text, answer.status), "danger");
  }
});

document.addEventListener("htmx:error", (event) => {
  const { ctx } = event.detail;
  if (ctx && !ctx.live && ctx.status !== "dropped") toast(body.dataset.unread, "danger");
});

// A morph brings the server's words; what the person opened, typed or chose is theirs.
window.htmx?.registerExtension("keep", {
  htmx_before_morph_attr(element, { attrName }) {
    if (attrName === "open" && element.matches("details")) return false;
    if (element.matches("input[type=checkbox]:checked")) return false; // selected as it was then
    if (attrName === "value" && element.matches("input") && element.value !== element.defaultValue) return false;
    return true;
  },
  htmx_before_morph_node(element) {
    return !(element.matches?.("textarea") && element.value !== element.defaultValue);
  },
});

document.addEventListener("toast", (event) => toast(event.detail.text ?? event.detail, event.detail.tone));
document.addEventListener("announce", (event) => announce(event.detail));

document.addEventListener("click", (event) => {
  event.target.closest("[data-dismiss]")?.closest(".toast").remove();
  const copy = event.target.closest("[data-copy]");
  if (copy) copyText(copy);
});

// A form that is under way says so on its button, and is not sent twice by a second press. It is free again when the page
// is come back to, or if no answer comes: the server knows one operation from two.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || (event.submitter?.formMethod || form.method) !== "post") return;
  if ("sent" in form.dataset) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "";
  event.submitter?.setAttribute("aria-busy", "true");
  setTimeout(() => "sent" in form.dataset && announce(body.dataset.busy), BUSY_AFTER);
  setTimeout(free, GIVE_UP, form);
});

addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach(free));

function free(form) {
  delete form.dataset.sent;
  for (const button of document.querySelectorAll(".button[aria-busy], .link[aria-busy]")) {
    if (button.form === form) button.removeAttribute("aria-busy");
  }
}

// The choice of theme is seen at once; the form keeps it without script, too.
document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-preferences]");
  if (!form) return;
  const theme = form.elements.theme.value;
  const keys = form.elements.keys.checked ? "on" : "off";
  const live = form.elements.live.checked ? "on" : "off";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  body.dataset.keys = keys;
  localStorage.setItem("keys", keys);
  for (const [name, value] of [["theme", theme], ["keys", keys], ["live", live]]) {
    document.cookie = `${name}=${value}; path=/; max-age=31536000; samesite=lax`;
  }
  if ((body.dataset.follow ?? "on") !== live) {
    body.dataset.follow = live;
    document.dispatchEvent(new CustomEvent("follow"));
  }
});

// What lies behind an open popover is dimmed, so the focus does not go there.
document.addEventListener("focusin", (event) => {
  const shown = document.querySelector(".popover:popover-open");
  if (shown && !shown.contains(event.target)) shown.querySelector(FOCUSED)?.focus();
});

// What is open, or chosen, is in sight in the list that scrolls by itself; the page stays where it is.
for (const place of document.querySelectorAll(".inbox-row > [aria-current], .scopes > [aria-current]")) {
  const list = place.closest(".split-list, .scopes");
  const [at, frame] = [place.getBoundingClientRect(), list.getBoundingClientRect()];
  if (at.bottom > frame.bottom) list.scrollTop += at.bottom - (frame.top + frame.bottom) / 2;
  if (at.right > frame.right || at.left < frame.left) list.scrollLeft += at.right - (frame.left + frame.right) / 2;
}

function announce(text) {
  document.querySelector("[data-announce]").textContent = text;
}

function toast(text, tone) {
  const place = document.querySelector("[data-toasts]");
  const made = place.querySelector("template[data-toast]").content.firstElementChild.cloneNode(true);
  made.querySelector("p").textContent = text;
  if (tone) made.dataset.tone = tone;
  for (const old of place.querySelectorAll(".toast")) {
    if (old.querySelector("p").textContent === text) old.remove();
  }
  place.append(made);
}

// The first heading and paragraph of an error page say what happened.
function failure(text, status) {
  const page = new DOMParser().parseFromString(text ?? "", "text/html");
  const words = [...page.querySelectorAll("main h1, main p")].slice(0, 2).map((e) => e.textContent.trim());
  return words.join(". ") || `${body.dataset.unread} (${status})`;
}

async function copyText(button) {
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  document.dispatchEvent(new CustomEvent("announce", { detail: button.dataset.copied ?? "" }));
}
