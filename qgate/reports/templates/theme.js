// The theme button: the choice is kept where the browser allows a file to keep one.
const root = document.documentElement;

function startTheme() {
  try {
    const kept = localStorage.getItem("qgate-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch { /* storage is switched off: the system's theme it is */ }
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("qgate-theme", root.dataset.theme); } catch { /* as above */ }
  });
}
