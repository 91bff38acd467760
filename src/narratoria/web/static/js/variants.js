/** The variants of a turn that was taken again: arrows, the keys Left and Right among them, and a swipe on the text. */
import { h, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { showVariant } from "./moves.js";
import { fromRight, t } from "./words.js";

/** How far a finger goes sideways, in pixels, and how much further than up or down. */
const FAR = 56;
const SIDEWAYS = 1.8;

export class Variants {
  /** Only the newest turn: a finger that slips on an older one asks no question. */
  #swipeable = false;

  /** @param {import("./turn.js").TurnPart} part */
  constructor(part) {
    this.part = part;
    this.earlier = this.#arrow(t("variants.earlier"), "back-chevron", -1);
    this.later = this.#arrow(t("variants.later"), "chevron", 1);
    this.place = h("span");
    this.node = h("div", { class: "variants", role: "group", "aria-label": t("variants.title"), hidden: true }, this.earlier, this.place, this.later);
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.#listenForSwipes(part.body);
  }

  get #all() {
    return this.part.view.game.world.variants.get(this.part.turn.turn) ?? [];
  }

  get #at() {
    return this.#all.indexOf(this.part.turn.turn);
  }

  update() {
    const { view: { game }, turn, body, node } = this.part;
    const all = this.#all;
    const shown = all.length > 1 && turn.outcome !== null;
    this.node.hidden = !shown;
    body.classList.toggle("swipeable", this.#swipeable = shown && node.classList.contains("last"));
    if (!shown) return;
    setText(this.place, t("variants.place", { at: this.#at + 1, all: all.length }));
    const off = game.busy || game.moving;
    // not `disabled`: who goes on with the same key keeps the focus at the last one
    setAttribute(this.earlier, "aria-disabled", off || this.#at === 0);
    setAttribute(this.later, "aria-disabled", off || this.#at === all.length - 1);
  }

  /** Give the focus to the arrow of that direction. @param {number} step */
  focus(step) {
    (step < 0 ? this.earlier : this.later).focus({ preventScroll: true });
  }

  #arrow(label, symbol, step) {
    return h("button", { class: "icon-button", type: "button", "aria-label": label, title: label, on: { click: () => this.#go(step, true) } }, icon(symbol));
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    this.#go(fromRight() ? -step : step, true);
  }

  async #go(step, focused) {
    const { view, turn } = this.part;
    const to = this.#all[this.#at + step];
    if (to === undefined || this.node.hidden || view.game.busy || view.game.moving) return;
    view.expectVariant(to, focused ? step : 0);
    if (!(await showVariant(view.game, turn, to))) view.expectVariant(null, 0);
  }

  /** The browser scrolls up and down itself (`touch-action`), and then takes the finger away from here. */
  #listenForSwipes(body) {
    let from = null;
    body.addEventListener("pointerdown", (event) => {
      const own = event.target.closest("input, textarea, select, audio, video, pre, .player"); // what moves sideways itself, or is dragged
      from = this.#swipeable && event.pointerType === "touch" && event.isPrimary && !own ? { x: event.clientX, y: event.clientY } : null;
    });
    body.addEventListener("pointercancel", () => { from = null; });
    body.addEventListener("pointerup", (event) => {
      if (!from || !event.isPrimary) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      from = null;
      if (Math.abs(x) < FAR || Math.abs(x) < SIDEWAYS * Math.abs(y) || !document.getSelection().isCollapsed) return;
      const forward = fromRight() ? x > 0 : x < 0;
      this.#go(forward ? 1 : -1, false);
    });
  }
}
