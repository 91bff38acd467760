/** What a reader sets for this browser: kept in local storage, applied to the root element. */

const KEY = "narratoria";
export const SIZES = { min: 15, max: 28, normal: 19 };
const DEFAULTS = { theme: "dark", motion: "system", font: "serif", width: "medium", size: SIZES.normal, line: "normal", contrast: "system", pace: "normal", volume: 80, muted: false, ambience: true, aloud: false, world: true };

export function prefs() {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return { ...DEFAULTS };
  }
}

/** @param {Partial<typeof DEFAULTS>} change */
export function setPrefs(change) {
  const next = { ...prefs(), ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // a private window may refuse storage: the choice then holds for this page only
  }
  const root = document.documentElement;
  for (const name of ["theme", "motion", "font", "width", "line", "contrast", "pace"]) root.dataset[name] = next[name];
  root.style.setProperty("--reading-size", `${next.size}px`);
}

export function calm() {
  const { motion } = document.documentElement.dataset;
  return motion === "reduce" || (motion === "system" && matchMedia("(prefers-reduced-motion: reduce)").matches);
}
