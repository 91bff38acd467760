/** The gallery: everything the tools have made, by kind. */
import { fileSize, h, Keyed, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { kindOf, media, openLightbox, titleOf } from "./media.js";

const KINDS = [["all", "Everything"], ["image", "Pictures"], ["audio", "Sounds"], ["video", "Films"], ["other", "Other files"]];

export class AssetsView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.kind = "all";
    this.chips = KINDS.map(([kind, label]) => h("button", { class: "filter", "data-kind": kind, on: { click: () => { this.kind = kind; this.drawn = -1; this.update(); } } }, h("span", { text: label }), h("span", { class: "count" })));
    this.filter = h("div", { class: "filters", role: "group", "aria-label": "Kind of asset" }, ...this.chips);
    this.grid = h("div", { class: "gallery" });
    this.cards = new Keyed(this.grid);
    this.empty = h("div", { class: "empty" }, icon("image"), h("h2", { text: "Nothing to look at yet" }),
      h("p", { text: "Pictures, sounds and films that the tools make are collected here, and shown in the story where they belong." }));
    this.node = h("div", { class: "scroll-view" }, h("div", { class: "wide-page" }, h("header", { class: "view-head" }, h("h1", { text: "Assets" }), this.filter), this.empty, this.grid));
  }

  /** Deep link: #assets/<call>/<asset>. @param {string} key @returns {boolean} whether it is here */
  show(key) {
    if (!this.game.world.assets.has(key)) return false;
    this.kind = "all";
    this.drawn = -1;
    this.update();
    const node = this.cards.parts.get(key)?.node;
    node?.scrollIntoView({ block: "center" });
    node?.focus({ preventScroll: true });
    return true;
  }

  update() {
    const { world } = this.game;
    if (this.drawn === world.assetsRev) return;
    this.drawn = world.assetsRev;
    const assets = [...world.assets.values()].filter((asset) => !world.turns.get(asset.turn)?.undone).reverse();
    for (const chip of this.chips) {
      const count = assets.filter((asset) => chip.dataset.kind === "all" || kindOf(asset) === chip.dataset.kind).length;
      setText(chip.lastElementChild, String(count));
      chip.hidden = !count && chip.dataset.kind !== "all" && chip.dataset.kind !== this.kind;
      setAttribute(chip, "aria-pressed", String(chip.dataset.kind === this.kind));
    }
    this.empty.hidden = assets.length > 0;
    this.filter.hidden = !assets.length;
    const shown = assets.filter((asset) => this.kind === "all" || kindOf(asset) === this.kind);
    this.cards.show(shown, (asset) => asset.key, (asset) => ({ node: card(asset, world) }));
  }
}

function card(asset, world) {
  const kind = kindOf(asset);
  const maker = world.calls.get(asset.call)?.tool;
  const facts = [asset.turn ? `Turn ${asset.turn}` : null, maker, fileSize(asset.size)].filter(Boolean).join(" · ");
  return h("figure", { class: `card asset ${kind}`, tabindex: "-1" }, h("div", { class: "asset-stage" }, kind === "audio" ? icon("sound") : "", media(asset, openLightbox)),
    h("figcaption", {}, h("strong", { text: titleOf(asset), dir: "auto" }), h("span", { class: "quiet", text: kind === "other" ? `${facts} · ${asset.mediaType}` : facts })));
}
