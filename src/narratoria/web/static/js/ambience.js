/** The sound of a place: the newest one that a tool calls so goes on by itself, and fades into the next. */
import { api } from "./api.js";
import { h } from "./dom.js";
import { prefs } from "./prefs.js";

/** Milliseconds of a fade, and of its steps. */
const FADE = 1600;
const STEP = 80;

export class Ambience {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    /** @type {HTMLAudioElement|null} */
    this.playing = null;
    game.views.push(() => this.update());
    addEventListener("loudness", () => this.update(true));
    // a browser lets nothing be heard before somebody has touched the page
    for (const type of ["pointerdown", "keydown"]) addEventListener(type, () => this.update(true), { once: true });
    document.addEventListener("visibilitychange", () => this.update(true));
    this.update();
  }

  /** What should be heard: the newest asset whose metadata say `ambience`; `false` there ends it. */
  #wanted() {
    const { world } = this.game;
    if (!prefs().ambience || document.hidden) return null;
    const newest = [...world.assets.values()].findLast((asset) => typeof asset.metadata?.ambience === "boolean" && !world.turns.get(asset.turn)?.undone);
    return newest?.metadata.ambience && /^audio\//.test(newest.mediaType) ? newest.hash : null;
  }

  update(anew = false) {
    const { assetsRev, stateRev } = this.game.world;
    const drawn = `${assetsRev} ${stateRev}`;
    if (drawn === this.drawn && !anew) return;
    this.drawn = drawn;
    const wanted = this.#wanted();
    if (wanted !== (this.playing?.dataset.hash ?? null)) {
      if (this.playing) fade(this.playing, 0, true);
      this.playing = wanted && h("audio", { class: "ambience", src: api.assetUrl(wanted), loop: true, data: { hash: wanted } });
      if (this.playing) {
        this.playing.volume = 0;
        document.body.append(this.playing);
      }
    }
    if (!this.playing) return;
    this.playing.muted = prefs().muted;
    if (this.playing.paused) this.playing.play().catch(() => {}); // not allowed yet: the next touch asks again
    fade(this.playing, prefs().volume / 100);
  }
}

/** @param {HTMLAudioElement} element @param {number} goal @param {boolean} [ends] whether it is over then */
function fade(element, goal, ends = false) {
  clearInterval(element.fading);
  const step = STEP / FADE;
  element.fading = setInterval(() => {
    const left = goal - element.volume;
    element.volume = Math.abs(left) <= step ? goal : element.volume + Math.sign(left) * step;
    if (element.volume !== goal) return;
    clearInterval(element.fading);
    if (ends) {
      element.pause();
      element.remove();
    }
  }, STEP);
}
