/** The frame around a story: navigation, title, banner; and which view is shown. */
import { api, ApiError } from "./api.js";
import { Composer } from "./composer.js";
import { attempt } from "./dialogs.js";
import { coded, decodePart, h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { listenForShortcuts } from "./shortcuts.js";
import { StoryView } from "./story.js";
import { directionOf, t } from "./words.js";

const VIEWS = [["narrative", t("shell.narrative"), "book"], ["tools", t("shell.tools"), "wrench"], ["assets", t("shell.assets"), "image"], ["state", t("shell.state"), "tree"], ["memory", t("shell.memory"), "bookmark"]];
const BANNERS = {
  offline: t("shell.offline"),
  expired: t("shell.expired"),
};

/** A story with a mistake in it, say, which its author is about to mend. */
const refusal = (reason) => t("shell.refused", { reason });

/** Milliseconds. Then what a story can begin without is fetched. */
const SOON = 1500;

/** @type {Promise<any>|null} */
let laterParts = null;

/** The rest of the page's code. */
function later() {
  laterParts ??= import("./later.js").catch(() => {
    laterParts = null;
    throw new ApiError(t("shell.no_part"), 0);
  });
  return laterParts;
}

export class Shell {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.story = new StoryView(game);
    this.composer = new Composer(game, this.story.jump);
    const narrative = h("div", { class: "narrative" }, this.story.node, this.composer.node);
    /** Those that have been asked for, by name. @type {Object<string, {node: HTMLElement, update: () => void, show?: (id: string) => boolean}>} */
    this.views = {
      narrative: { node: narrative, update: () => { this.composer.update(); this.story.update(); } }, // the story last: it settles the focus
    };
    this.title = h("h1", { class: "bar-title", dir: "auto" });
    this.banner = h("div", { class: "banner", role: "alert", hidden: true });
    this.links = VIEWS.map(([name, label, symbol]) => h("a", { class: "nav-link", href: `#${name}` }, h("span", { class: "nav-icon" }, icon(symbol), h("i", { class: "badge", hidden: true, "aria-hidden": "true" })), h("span", { text: label })));
    this.main = h("main", { id: "main", tabindex: "-1" }, narrative);
    addEventListener("hashchange", () => this.#route());
    listenForShortcuts(game, this.composer.field, () => this.#openSearch());
  }

  /** @param {HTMLElement} root @param {{title: string, language: string}|null} first what the page came with */
  mount(root, first) {
    const settings = h("button", { class: "icon-button", "aria-label": t("settings.title"), on: { click: () => this.#openSettings() } }, icon("sliders"));
    this.search = h("button", { class: "icon-button search-button", "aria-label": t("shell.search"), title: t("shell.search"), on: { click: () => this.#openSearch() } }, icon("search"));
    const home = h("a", { class: "icon-button home", href: "/", "aria-label": t("shell.library") }, icon("home"));
    this.rail = h("nav", { class: "rail", "aria-label": t("shell.views") }, ...this.links);
    root.replaceChildren(
      this.rail,
      h("div", { class: "stage" }, h("header", { class: "bar" }, home, this.title, this.search, settings), this.banner, this.main));
    if (first) this.#name(first);
    this.game.views.push(() => this.update());
    this.#route();
    // the story itself comes first
    if (!first) setTimeout(() => this.#readTitle());
    // not while the first answer may be on its way; who asks for it earlier has it at once, or hears why not
    setTimeout(() => this.#addPanel(settings), SOON);
  }

  /** What the story shows beside it, if it shows anything; whoever asks for it waits for nothing. */
  async #addPanel(before) {
    try {
      const parts = await later();
      parts.registerWorker();
      new parts.Ambience(this.game);
      const view = await api.panel(this.game.id);
      if (!view.parts.length || this.gone) return;
      this.panel = new parts.WorldPanel(this.game, view, this.views.narrative.node);
      before.before(this.panel.button);
    } catch {
      // nothing of the story hangs on it, and what is wrong is told by what does
    }
  }

  async #readTitle() {
    try {
      const { title, storyTitle, language } = await api.session(this.game.id);
      this.#name({ title: title || storyTitle, language });
      this.update();
    } catch (error) {
      if (error.status === 404) this.game.connection = "gone";
      this.update();
    }
  }

  #name({ title, language }) {
    this.named = title;
    this.story.node.lang = this.title.lang = language; // hyphens, voices and fonts are those of the story
    this.story.page.dir = directionOf(language);
  }

  async #openSettings() {
    const parts = await attempt(later);
    parts?.openSettings(this.gone ? null : this.game);
  }

  async #openSearch() {
    const parts = await attempt(later);
    if (!parts || this.gone) return;
    this.finder ??= new parts.StorySearch(this.game, this.story);
    this.finder.open();
  }

  #route() {
    const [name, rest] = location.hash.slice(1).split("/");
    this.current = VIEWS.some(([key]) => key === name) ? name : "narrative";
    this.argument = rest ? decodePart(rest) : null;
    VIEWS.forEach(([key], index) => (key === this.current ? this.links[index].setAttribute("aria-current", "page") : this.links[index].removeAttribute("aria-current")));
    this.#reveal();
  }

  #reveal() {
    for (const [key, view] of Object.entries(this.views)) view.node.hidden = key !== this.current;
    this.update();
  }

  /** Make the view that is asked for; where its code could not be had, once more with the next thing that happens. */
  async #make() {
    if (this.making) return;
    this.making = true;
    const parts = await attempt(later);
    this.making = false;
    if (!parts || this.views[this.current]) return;
    const kinds = { tools: parts.ToolsView, assets: parts.AssetsView, state: parts.StateView, memory: parts.MemoryView };
    const view = new kinds[this.current](this.game);
    this.views[this.current] = view;
    this.main.append(view.node);
    this.#reveal();
  }

  update() {
    const { world, connection } = this.game;
    if (connection === "gone") {
      this.#showGone();
      return;
    }
    const view = this.views[this.current];
    if (view) view.update();
    else this.#make();
    if (view && this.argument && this.game.opened && view.show?.(this.argument)) this.argument = null;
    const title = this.named || world.session?.title || world.session?.story || "";
    setText(this.title, title);
    this.title.title = title; // it may be cut
    this.title.hidden = !title;
    const label = VIEWS.find(([key]) => key === this.current)[1];
    document.title = title ? `${title} · ${label} · Narratoria` : "Narratoria";
    const banner = connection === "refused" ? refusal(this.game.stream.reason) : BANNERS[connection];
    this.banner.hidden = !banner;
    if (this.announced !== banner) this.banner.replaceChildren(h("span", {}, ...coded(banner ?? "")));
    this.announced = banner;
    this.#badges(world);
  }

  /** A page of its own: nothing of a story that is not there can be read, played or lost. */
  #showGone() {
    if (this.gone) return;
    this.gone = h("div", { class: "empty gone", role: "alert" }, icon("book"), h("h1", { text: t("shell.gone") }),
      h("p", { text: t("shell.gone_note") }),
      this.game.stream?.reason ? h("p", { class: "quiet", dir: "auto", text: this.game.stream.reason }) : "",
      h("a", { class: "button filled", href: "/" }, icon("home"), h("span", { text: t("page.to_library") })));
    this.main.replaceChildren(this.gone);
    this.title.hidden = this.banner.hidden = this.rail.hidden = this.search.hidden = true;
    this.rail.parentElement.classList.add("no-rail");
    document.title = `${t("shell.not_here")} · Narratoria`;
    this.gone.querySelector("a").focus();
  }

  #badges(world) {
    const running = world.running !== null && world.turns.get(world.running)?.calls.some((id) => world.calls.get(id).ended === null);
    this.links[1].querySelector(".badge").hidden = !running;
    if (this.begins !== this.game.begins) { // older turns have come, and are no news
      this.begins = this.game.begins;
      this.seenAssets = undefined;
    }
    if (this.current === "assets") this.seenAssets = world.assets.size;
    this.seenAssets ??= world.session ? world.assets.size : undefined;
    this.links[2].querySelector(".badge").hidden = !(world.assets.size > this.seenAssets);
  }
}
