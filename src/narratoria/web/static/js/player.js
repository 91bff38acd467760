/** Sound and film with controls of our own: the browser's look different everywhere, and like nothing else here. */
import { h, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { prefs, setPrefs } from "./prefs.js";
import { t } from "./words.js";

/** @param {number} seconds @returns {string} as a clock shows them */
function clock(seconds) {
  const whole = Number.isFinite(seconds) ? Math.floor(seconds) : 0;
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** Everything that can be heard is as loud as the reader has set it. @param {HTMLMediaElement} element */
function setLoudness(element) {
  const { volume, muted } = prefs();
  element.volume = volume / 100;
  element.muted = muted;
}

/** After a change of the preferences. Ambience sets its own. */
export function applyLoudness() {
  for (const element of document.querySelectorAll("audio:not(.ambience), video")) setLoudness(element);
  dispatchEvent(new Event("loudness"));
}

/**
 * @param {"audio"|"video"} tag
 * @param {{url: string, title: string, loop?: boolean}} what
 * @returns {{node: HTMLElement, element: HTMLMediaElement}}
 */
export function makePlayer(tag, { url, title, loop }) {
  const element = h(tag, { src: url, preload: "metadata", loop: Boolean(loop), playsinline: true, tabindex: "-1" });
  const button = (run) => h("button", { class: "icon-button", type: "button", on: { click: run } });
  const play = button(() => (element.paused ? start() : element.pause()));
  const mute = button(() => { setPrefs({ muted: !prefs().muted }); applyLoudness(); });
  const seek = h("input", { type: "range", class: "seek", min: 0, max: 1, step: "any", value: 0, "aria-label": t("player.position", { title }) });
  const time = h("span", { class: "player-time", "aria-hidden": "true" });
  const full = tag === "video" && document.fullscreenEnabled ? button(() => (document.fullscreenElement ? document.exitFullscreen() : node.requestFullscreen())) : "";
  const node = h("div", { class: `player ${tag}` }, element, h("div", { class: "player-bar", role: "group", "aria-label": title }, play, seek, time, mute, full));

  async function start() {
    for (const other of document.querySelectorAll("audio, video")) if (other !== element && !other.classList.contains("ambience")) other.pause();
    if (element.ended) element.currentTime = 0;
    await element.play().catch(() => {}); // what cannot be played is told by its error
  }
  function show() {
    const { duration, currentTime, paused } = element;
    const known = Number.isFinite(duration) && duration > 0;
    seek.disabled = !known;
    if (known) seek.max = String(duration);
    if (!seek.matches(":active")) seek.value = String(currentTime);
    seek.style.setProperty("--at", known ? `${(100 * Number(seek.value)) / duration}%` : "0%");
    setAttribute(seek, "aria-valuetext", t("media.place", { place: clock(currentTime), total: clock(duration) }));
    setText(time, known ? `${clock(currentTime)} / ${clock(duration)}` : clock(currentTime));
    put(play, paused ? "play" : "pause", paused ? t("player.play", { title }) : t("player.pause", { title }));
    put(mute, element.muted ? "muted" : "sound", element.muted ? t("player.sound_on") : t("player.sound_off"));
    if (full) put(full, "full", t("player.full", { title }));
  }
  for (const type of ["loadedmetadata", "durationchange", "timeupdate", "play", "pause", "ended", "volumechange"]) element.addEventListener(type, show);
  seek.addEventListener("input", () => { element.currentTime = Number(seek.value); show(); });
  if (tag === "video") element.addEventListener("click", () => play.click());
  setLoudness(element);
  show();
  return { node, element };
}

function put(button, symbol, label) {
  if (button.dataset.shows !== symbol) {
    button.dataset.shows = symbol;
    button.replaceChildren(icon(symbol));
  }
  setAttribute(button, "aria-label", label);
}
