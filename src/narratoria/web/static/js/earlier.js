/** How much of a long story is here, and the way to the rest: for views of what happened in each turn. */
import { h, setText } from "./dom.js";
import { activeTurns } from "./world.js";
import { t } from "./words.js";

export class EarlierTurns {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.text = h("span");
    this.button = h("button", { class: "button tonal small", on: { click: () => this.#show() } });
    this.node = h("p", { class: "earlier-turns quiet", role: "status", hidden: true }, this.text, this.button);
  }

  #show() {
    this.asked = this.game.earlier;
    this.button.disabled = true; // until they have come
    this.game.showEarlier();
  }

  update() {
    const { earlier, world } = this.game;
    if (earlier !== this.asked) this.button.disabled = false;
    if (this.node.contains(document.activeElement) && !earlier) document.getElementById("main").focus();
    this.node.hidden = !earlier;
    if (!earlier) return;
    const here = activeTurns(world).length;
    setText(this.text, t("earlier.here", { here, total: here + earlier }));
    setText(this.button, t("earlier.show", { number: earlier }));
  }
}
