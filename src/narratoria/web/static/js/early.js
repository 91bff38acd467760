/* Runs before the first paint, so that a light page never flashes dark. A classic script: modules are too late. */
{
  const root = document.documentElement;
  let prefs = {};
  try {
    prefs = JSON.parse(localStorage.getItem("narratoria") ?? "{}");
  } catch {
    prefs = {}; // storage refused by the browser, or not ours: the defaults are fine
  }
  root.dataset.theme = prefs.theme ?? "dark";
  root.dataset.motion = prefs.motion ?? "system";
  root.dataset.font = prefs.font ?? "serif";
  root.dataset.width = prefs.width ?? "medium";
  root.style.setProperty("--reading-size", `${prefs.size ?? 19}px`);
}
