// The colours: the reader's system decides, unless the switch was used. Runs before anything is drawn.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("doppel.theme");
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  const isDark = () => (chosen ? chosen === "dark" : dark.matches);

  function apply() {
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(isDark()));
  }

  function flip() {
    const wanted = isDark() ? "light" : "dark";
    // Back to the system's choice: nothing is stored any more.
    chosen = (wanted === "dark") === dark.matches ? null : wanted;
    try {
      if (chosen) localStorage.setItem("doppel.theme", chosen);
      else localStorage.removeItem("doppel.theme");
    } catch {
      // As above.
    }
    apply();
  }

  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", flip);
  });
})();
