// On a phone the admin site's lists show each row as a sheet, whose labels unfold writes In Title Case. admin.css takes
// that away; here each begins with a capital letter, as the columns do on a wide window.
document.addEventListener("readystatechange", () => {
  if (document.readyState !== "interactive") return;
  for (const cell of document.querySelectorAll("#result_list [data-label]")) {
    const label = cell.dataset.label;
    cell.dataset.label = label.charAt(0).toLocaleUpperCase() + label.slice(1);
  }
});
