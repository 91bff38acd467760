/** The panel beside the story: where one is, what one has and knows, moments, branches and endings. It follows the state. */
import { api } from "./api.js";
import { h, setAttribute } from "./dom.js";
import { activeTurns, endingOf, provisionalState } from "./world.js";
import { icon } from "./icons.js";
import { isObject } from "./merge.js";
import { returnTo } from "./moves.js";
import { prefs, setPrefs } from "./prefs.js";
import { t } from "./words.js";

/** Least free space beside the story, in pixels, in which the panel is shown there. */
const LEAST = 244;
const WIDEST = 360;
const GAP = 20;
const MOST_THINGS = 100;
const LONGEST = 200;

/** The value at a path, of the state's own keys alone. */
function at(state, path) {
  let value = state;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** Whether the state is as a condition says. @param {any} value @param {any} wanted */
function holds(value, wanted) {
  if (!isObject(wanted)) return JSON.stringify(value) === JSON.stringify(wanted);
  return Object.entries(wanted).every(([key, inner]) => {
    if (key === "exists") return (value !== undefined && value !== null) === Boolean(inner);
    if (key === "missing") return (value === undefined || value === null) === Boolean(inner);
    return holds(at(value, [key]), inner);
  });
}

const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
const isPlain = (value) => ["string", "number", "boolean"].includes(typeof value);

/** What is had, in words: what is false or nothing is not had. */
function things(value, labels) {
  const found = Array.isArray(value) ? value.map((one, index) => [String(index), one]) : isObject(value) ? Object.entries(value) : [];
  return found.filter(([, one]) => one !== false && one !== null && one !== 0 && one !== "").slice(0, MOST_THINGS).map(([key, one]) => {
    const own = isObject(one) ? one.title ?? one.name : one;
    const name = Object.hasOwn(labels, key) ? labels[key] : typeof own === "string" ? own : key;
    const more = isObject(one) ? Object.keys(one).filter((inner) => one[inner] === true) : typeof one === "number" ? [`× ${one}`] : [];
    return { key, text: short([name, ...more].join(" · ")) };
  });
}

export class WorldPanel {
  /** @param {import("./game.js").Game} game @param {{parts: any[], endings: string[], parent: any, branches: any[]}} view @param {HTMLElement} frame what it stands in */
  constructor(game, view, frame) {
    this.game = game;
    this.view = view;
    this.frame = frame;
    this.parts = view.parts.map((part) => new Part(part, this));
    this.close = h("button", { class: "icon-button", "aria-label": t("panel.close"), on: { click: () => this.dialog.close() } }, icon("close"));
    this.dialog = h("dialog", { class: "sheet", "aria-label": t("panel.world") }, this.close);
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.node = h("aside", { class: "world", "aria-label": t("panel.world"), tabindex: "0" }, ...this.parts.map((part) => part.node));
    this.button = h("button", { class: "icon-button world-button", "aria-label": t("panel.world"), title: t("panel.world"), on: { click: () => this.#toggle() } }, icon("map"));
    document.body.append(this.dialog);
    new ResizeObserver(() => this.#place()).observe(frame.querySelector(".page"));
    addEventListener("resize", () => this.#place());
    document.addEventListener("visibilitychange", () => document.hidden || this.#refresh()); // a branch was made, or deleted
    game.views.push(() => this.update());
    this.#place();
    this.update();
  }

  /** Beside the story where there is room for it, else in a sheet; the story keeps its place. */
  #place() {
    if (!this.frame.checkVisibility()) return;
    const [whole, page] = [this.frame.clientWidth, this.frame.querySelector(".page").clientWidth];
    const free = (whole - page) / 2 - GAP;
    this.beside = free >= LEAST - GAP && document.documentElement.dataset.height === "tall";
    const place = this.beside ? this.frame : this.dialog;
    if (this.node.parentElement !== place) place.append(this.node);
    if (this.beside && this.dialog.open) this.dialog.close();
    this.node.style.setProperty("--world-width", `${Math.min(WIDEST, free)}px`);
    this.node.style.setProperty("--world-left", `${(whole + page) / 2}px`);
    this.node.hidden = this.beside && !prefs().world;
    setAttribute(this.button, "aria-pressed", this.beside ? String(!this.node.hidden) : null);
    setAttribute(this.button, "aria-haspopup", this.beside ? null : "dialog");
  }

  #toggle() {
    if (this.beside) {
      setPrefs({ world: !prefs().world });
      this.#place();
    } else {
      this.dialog.showModal();
      this.#refresh(); // branches may have been made elsewhere
    }
  }

  update() {
    const ending = endingOf(this.game.world);
    if (ending && !this.view.endings.includes(ending)) this.view.endings = [...this.view.endings, ending].sort();
    const state = provisionalState(this.game.world);
    for (const part of this.parts) part.update(state);
  }

  async #refresh() {
    const view = await api.panel(this.game.id).catch(() => null);
    if (!view) return;
    this.view = view;
    this.update();
  }

  /** The newest picture of a turn that was told where one is now. */
  pictureAt(path, state) {
    const { world } = this.game;
    const here = JSON.stringify(at(state, path));
    return [...world.assets.values()].findLast((asset) => {
      const turn = world.turns.get(asset.turn);
      return /^image\//.test(asset.mediaType) && turn && !turn.undone && JSON.stringify(at(turn.after, path)) === here;
    });
  }
}

/** One part: drawn anew when what it says has changed. */
class Part {
  constructor(part, panel) {
    this.part = part;
    this.panel = panel;
    this.path = part.path ? part.path.split(".") : [];
    this.title = h("h2", { text: part.label, dir: "auto" });
    this.body = h("div", { class: "world-body" });
    this.node = h("section", { class: `world-part world-${part.kind}` }, this.title, this.body);
  }

  update(state) {
    const model = this[`_${this.part.kind}`](state);
    const drawn = JSON.stringify(model);
    if (drawn === this.drawn) return;
    const before = this.model;
    this.drawn = drawn;
    this.model = model;
    this.node.hidden = model === null || (Array.isArray(model) && !model.length && !this.part.empty);
    if (!this.node.hidden) this[`_draw_${this.part.kind}`](model, before);
  }

  _place(state) {
    const value = at(state, this.path);
    if (!isPlain(value)) return null;
    const picture = this.panel.pictureAt(this.path, state);
    return { text: short(String(value)), hash: picture?.hash ?? null, alt: picture?.metadata?.alt ?? "" };
  }

  _draw_place({ text, hash, alt }) {
    this.body.replaceChildren(hash ? h("img", { src: api.assetUrl(hash), alt: typeof alt === "string" ? alt : "", decoding: "async" }) : "", h("p", { class: "world-place", dir: "auto", text }));
  }

  _things(state) {
    return things(at(state, this.path), this.part.labels ?? {});
  }

  _facts(state) {
    return (this.part.facts ?? []).filter((fact) => holds(state, fact.when)).map((fact) => ({ key: fact.label, text: fact.label }));
  }

  _draw_things(model, before) {
    const known = before && new Set(before.map((one) => one.key));
    const rows = model.map(({ key, text }) => h("li", { class: known && !known.has(key) ? "new" : null, dir: "auto", text }));
    this.body.replaceChildren(rows.length ? h("ul", {}, ...rows) : h("p", { class: "quiet", dir: "auto", text: this.part.empty }));
  }

  _draw_facts(model, before) {
    this._draw_things(model, before);
  }

  /** Moments and branches in the order of their turns, from where this story came to where one is. */
  _moments() {
    const { game, view } = this.panel;
    const last = activeTurns(game.world).at(-1)?.turn ?? 0;
    const points = [...game.world.checkpoints].filter(([, turn]) => !game.world.turns.get(turn)?.undone).map(([name, turn]) => ({ turn, name }));
    points.push(...(view.branches ?? []).map((one) => ({ turn: one.turn ?? 0, branch: one.id, name: one.title })));
    points.sort((one, other) => one.turn - other.turn);
    return { parent: view.parent ?? null, points, last };
  }

  _draw_moments({ parent, points, last }) {
    const link = (id) => `/play/${encodeURIComponent(id)}#narrative`;
    const row = (kind, symbol, ...content) => h("li", { class: `map-${kind}` }, icon(symbol), ...content);
    const rows = points.map(({ turn, name, branch }) => (branch
      ? row("branch", "branch", h("a", { href: link(branch), dir: "auto", text: name }), h("span", { class: "quiet", text: t("panel.from_turn", { turn }) }))
      : row("moment", "flag", turn === last ? h("span", { dir: "auto", text: name })
        : h("button", { class: "link", dir: "auto", text: name, on: { click: () => this.#return(name) } }), h("span", { class: "quiet", text: t("panel.turn", { turn }) }))));
    this.body.replaceChildren(h("ol", { class: "world-map" },
      parent ? row("parent", "back", h("a", { href: link(parent.id), dir: "auto", text: parent.title }), h("span", { class: "quiet", text: t("panel.up_to", { turn: parent.turn ?? 0 }) })) : row("start", "book", h("span", { text: t("panel.beginning") })),
      ...rows, row("here", "spark", h("span", { text: t("panel.here") }), h("span", { class: "quiet", text: last ? t("panel.turn", { turn: last }) : "" }))));
  }

  #return(name) {
    this.panel.dialog.close();
    returnTo(this.panel.game, name);
  }

  _endings() {
    const titles = Object.values(this.part.endings ?? {});
    return { found: titles.filter((title) => this.panel.view.endings.includes(title)), total: titles.length };
  }

  _draw_endings({ found, total }) {
    const dots = Array.from({ length: total }, (_, index) => h("i", { class: index < found.length ? "found" : null }));
    this.body.replaceChildren(h("p", { class: "world-count" }, h("span", { class: "dots", "aria-hidden": "true" }, ...dots), h("span", { text: t("panel.found", { found: found.length, total }) })),
      h("ul", {}, ...found.map((text) => h("li", { dir: "auto", text }))));
  }
}
