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
  root.dataset.line = prefs.line ?? "normal";
  root.dataset.contrast = prefs.contrast ?? "system";
  root.dataset.pace = prefs.pace ?? "normal";
  root.style.setProperty("--reading-size", `${prefs.size ?? 19}px`);

  // The height that is left, with the keyboard of a phone open too; a browser that lays the keyboard over the page says
  // so nowhere else.
  const view = window.visualViewport;
  const measure = () => {
    const height = Math.round(view.height * view.scale);
    root.dataset.height = height > 480 ? "tall" : height > 300 ? "short" : "tiny";
    if (innerHeight - height > 1) root.style.setProperty("--window", `${height}px`);
    else root.style.removeProperty("--window");
  };
  measure();
  view.addEventListener("resize", measure);

  // All windows of a browser share its few connections, and their server counts them by this name.
  let name = "unnamed";
  try {
    name = localStorage.getItem("narratoria-browser") ?? Math.random().toString(36).slice(2);
    localStorage.setItem("narratoria-browser", name);
  } catch {
    // one name for all who refuse storage: they share what one browser may have
  }
  window.browserName = name;

  // The story so far stands in the page, unless it is long. What follows is asked for while the page's own code is
  // still being read; `stream.js` takes this connection over.
  const session = /^\/play\/([^/]+)\/?$/.exec(location.pathname)?.[1];
  if (session) {
    const block = document.getElementById("story-so-far");
    window.storySoFar = block ? JSON.parse(block.textContent) : null;
    const seen = window.storySoFar ? `&after=${window.storySoFar.past.seq}` : "";
    const source = new EventSource(`/sessions/${session}/events?turns=50${seen}&browser=${name}${document.hidden ? "&once=1" : ""}`);
    const [missed, taken] = [[], new AbortController()];
    for (const type of ["open", "message", "snapshot", "later", "error"]) {
      source.addEventListener(type, (event) => missed.push(event), { signal: taken.signal });
    }
    window.earlyStream = { source, missed, taken };
  }
}
