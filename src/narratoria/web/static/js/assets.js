/** The gallery: everything the tools have made, by kind. */
import { api } from "./api.js";
import { attempt } from "./dialogs.js";
import { fileSize, h, Keyed, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { kindOf, media, openLightbox, titleOf } from "./media.js";
import { numeral, t } from "./words.js";

/** Older ones that come with one request. */
const PAGE = 100;
const KINDS = [["all", t("assets.all")], ["image", t("assets.pictures")], ["audio", t("assets.sounds")], ["video", t("assets.films")], ["other", t("assets.other")]];

export class AssetsView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.kind = "all";
    this.chips = KINDS.map(([kind, label]) => h("button", { class: "filter", "data-kind": kind, on: { click: () => { this.kind = kind; this.drawn = -1; this.update(); } } }, h("span", { text: label }), h("span", { class: "count" })));
    this.filter = h("div", { class: "filters", role: "group", "aria-label": t("assets.kind") }, ...this.chips);
    this.grid = h("div", { class: "gallery" });
    this.cards = new Keyed(this.grid);
    this.empty = h("div", { class: "empty" }, icon("image"), h("h2", { text: t("assets.none") }),
      h("p", { text: t("assets.none_note") }));
    /** Those of turns that this page has not loaded, as far as they have been asked for. @type {any[]} */
    this.older = [];
    this.total = 0;
    this.kinds = {};
    this.more = h("button", { class: "button tonal small", on: { click: () => this.#readOlder(PAGE) } });
    this.count = h("span");
    this.earlier = h("p", { class: "earlier-turns quiet", role: "status", hidden: true }, this.count, this.more);
    this.node = h("div", { class: "scroll-view" }, h("div", { class: "wide-page" }, h("header", { class: "view-head" }, h("h1", { text: t("shell.assets") }), this.filter), this.empty, this.grid, this.earlier));
  }

  /** How many older ones there are, and the next of them. */
  async #readOlder(most) {
    const { begins } = this.game;
    this.more.disabled = true;
    const page = await attempt(() => api.assets(this.game.id, this.older.at(-1)?.seq ?? begins, most));
    this.more.disabled = false;
    if (!page || begins !== this.begins) return;
    if (!this.older.length) [this.total, this.kinds] = [page.total, page.kinds];
    const first = this.older.length;
    this.older.push(...page.assets.map((asset) => ({ ...asset, key: `${asset.call}/${asset.assetId}` })));
    this.drawn = -1;
    this.update();
    if (most) this.cards.parts.get(this.older[first]?.key)?.node.focus({ preventScroll: true });
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
    const { world, begins } = this.game;
    if (this.begins !== begins) { // more turns have been loaded, or fewer
      [this.begins, this.older, this.total, this.kinds, this.drawn] = [begins, [], 0, {}, -1];
      if (begins) this.#readOlder(0);
    }
    if (this.drawn === world.assetsRev) return;
    this.drawn = world.assetsRev;
    const here = [...world.assets.values()].filter((asset) => !world.turns.get(asset.turn)?.undone).reverse();
    const assets = [...here, ...this.older];
    const total = here.length + this.total;
    for (const chip of this.chips) {
      const is = (asset) => chip.dataset.kind === "all" || kindOf(asset) === chip.dataset.kind;
      let count = here.filter(is).length;
      for (const [mediaType, many] of Object.entries(this.kinds)) if (is({ mediaType })) count += many;
      setText(chip.lastElementChild, numeral(count));
      chip.hidden = !count && chip.dataset.kind !== "all" && chip.dataset.kind !== this.kind;
      setAttribute(chip, "aria-pressed", String(chip.dataset.kind === this.kind));
    }
    this.empty.hidden = total > 0;
    this.filter.hidden = !total;
    const left = total - assets.length;
    this.earlier.hidden = left <= 0;
    setText(this.count, t("assets.here", { here: assets.length, total }));
    setText(this.more, t("assets.more", { count: Math.min(PAGE, left) }));
    const shown = assets.filter((asset) => this.kind === "all" || kindOf(asset) === this.kind);
    this.cards.show(shown, (asset) => asset.key, (asset) => ({ node: card(asset, world) }));
  }
}

function card(asset, world) {
  const kind = kindOf(asset);
  const maker = world.calls.get(asset.call)?.tool;
  const facts = [asset.turn ? t("turn.number", { turn: asset.turn }) : null, maker, fileSize(asset.size)].filter(Boolean).join(" · ");
  return h("figure", { class: `card asset ${kind}`, tabindex: "-1" }, h("div", { class: "asset-stage" }, kind === "audio" ? icon("sound") : "", media(asset, openLightbox)),
    h("figcaption", {}, h("strong", { text: titleOf(asset), dir: "auto" }), h("span", { class: "quiet", text: kind === "other" ? `${facts} · ${asset.mediaType}` : facts })));
}
