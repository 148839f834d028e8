// What went wrong with a passkey is said on the page; allauth's own script would only log it.
document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  const said = document.querySelector("[data-passkey-trouble]");
  said.querySelector("span").textContent = said.dataset.text;
  said.hidden = false;
});
