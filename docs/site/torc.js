// The button for light and dark, where the theme's own script does not run: Debian 12 ships furo.js as a module, which browsers refuse for
// pages of file://. "auto" follows the reader's system.
window.addEventListener("load", () => {
  const root = document.documentElement;
  if (!root.classList.contains("no-js")) return;
  root.classList.remove("no-js");
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const order = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  for (const button of document.getElementsByClassName("theme-toggle"))
    button.addEventListener("click", () => {
      const mode = order[(order.indexOf(document.body.dataset.theme) + 1) % order.length];
      document.body.dataset.theme = mode;
      localStorage.setItem("theme", mode);
    });
});
