(function () {
  "use strict";
  var root = document.documentElement;
  var kept = null;
  try { kept = localStorage.getItem("bisect-env-theme"); } catch (refused) { /* A file may have no storage. */ }
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;

  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }

  function reveal() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var around = target && target.closest("details");
    if (!around) return;
    around.hidden = false;
    around.open = true;
    target.scrollIntoView();
  }

  function choose(button) {
    var pressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(pressed));
    var chosen = all("[data-only][aria-pressed=true]").map(function (each) { return each.dataset.only; });
    all("[data-headline]").forEach(function (each) {
      var shown = !chosen.length || chosen.indexOf(each.dataset.headline) >= 0;
      if (each.tagName === "DETAILS") each.hidden = !shown;
      else each.classList.toggle("faded", !shown);
    });
  }

  document.addEventListener("DOMContentLoaded", function () {
    all("[data-needs-script]").forEach(function (each) { each.hidden = false; });
    var theme = document.getElementById("theme");
    function tell() { theme.textContent = dark() ? "Light theme" : "Dark theme"; }
    tell();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
    theme.addEventListener("click", function () {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("bisect-env-theme", root.dataset.theme); } catch (refused) { /* As above. */ }
      tell();
    });
    all("[data-only]").forEach(function (each) { each.addEventListener("click", function () { choose(each); }); });
    all("[data-open]").forEach(function (each) {
      each.addEventListener("click", function () {
        all(".evidence").forEach(function (one) { one.open = each.dataset.open === "all"; });
      });
    });
    all("a[href^='#']").forEach(function (each) {
      // The same anchor once more changes no hash.
      each.addEventListener("click", function () { setTimeout(reveal); });
    });
    addEventListener("hashchange", reveal);
    reveal();
  });
})();
