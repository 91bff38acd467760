/** The frame around a story: navigation, title, banner; and which view is shown. */
import { api } from "./api.js";
import { AssetsView } from "./assets.js";
import { Composer } from "./composer.js";
import { coded, decodePart, h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { openSettings } from "./settings.js";
import { StateView } from "./stateview.js";
import { StoryView } from "./story.js";
import { ToolsView } from "./tools.js";

const VIEWS = [["narrative", "Narrative", "book"], ["tools", "Tools", "wrench"], ["assets", "Assets", "image"], ["state", "State", "tree"]];
const BANNERS = {
  offline: "The server does not answer. Your story is safe; this page goes on by itself as soon as the server is back.",
  expired: "This page is no longer signed in. Open the address that `narratoria play` printed when it started.",
};

export class Shell {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.story = new StoryView(game);
    this.composer = new Composer(game);
    const narrative = h("div", { class: "narrative" }, this.story.node, this.composer.node);
    this.views = {
      narrative: { node: narrative, update: () => { this.composer.update(); this.story.update(); } }, // the story last: it settles the focus
      tools: new ToolsView(game),
      assets: new AssetsView(game),
      state: new StateView(game),
    };
    this.title = h("h1", { class: "bar-title", dir: "auto" });
    this.banner = h("div", { class: "banner", role: "alert", hidden: true });
    this.links = VIEWS.map(([name, label, symbol]) => h("a", { class: "nav-link", href: `#${name}` }, h("span", { class: "nav-icon" }, icon(symbol), h("i", { class: "badge", hidden: true, "aria-hidden": "true" })), h("span", { text: label })));
    this.main = h("main", { id: "main", tabindex: "-1" }, ...Object.values(this.views).map((view) => view.node));
    addEventListener("hashchange", () => {
      this.#route();
      this.main.parentElement?.scrollTo(0, 0); // where height is scarce, the frame scrolls
    });
    game.views.push(() => this.update());
  }

  mount(root) {
    const settings = h("button", { class: "icon-button", "aria-label": "Settings", on: { click: () => openSettings(this.gone ? null : this.game) } }, icon("sliders"));
    const home = h("a", { class: "icon-button home", href: "/", "aria-label": "Library" }, icon("home"));
    this.rail = h("nav", { class: "rail", "aria-label": "Views" }, ...this.links);
    root.replaceChildren(
      this.rail,
      h("div", { class: "stage" }, h("header", { class: "bar" }, home, this.title, settings), this.banner, this.main));
    this.#route();
    // the story itself comes first
    setTimeout(() => this.#readTitle());
  }

  async #readTitle() {
    try {
      const { title, storyTitle, language } = await api.session(this.game.id);
      this.named = title || storyTitle;
      this.story.node.lang = this.title.lang = language; // hyphens, voices and fonts are those of the story
      this.update();
    } catch (error) {
      if (error.status === 404) this.game.connection = "gone";
      this.update();
    }
  }

  #route() {
    const [name, rest] = location.hash.slice(1).split("/");
    this.current = Object.hasOwn(this.views, name) ? name : "narrative";
    this.argument = rest ? decodePart(rest) : null;
    for (const [key, view] of Object.entries(this.views)) view.node.hidden = key !== this.current;
    VIEWS.forEach(([key], index) => (key === this.current ? this.links[index].setAttribute("aria-current", "page") : this.links[index].removeAttribute("aria-current")));
    this.update();
  }

  update() {
    const { world, connection } = this.game;
    if (connection === "gone") {
      this.#showGone();
      return;
    }
    this.views[this.current].update();
    if (this.argument && world.calls.has(this.argument)) {
      this.views[this.current].show?.(this.argument);
      this.argument = null;
    }
    const title = this.named || world.session?.title || world.session?.story || "";
    setText(this.title, title);
    this.title.hidden = !title;
    const view = VIEWS.find(([key]) => key === this.current)[1];
    document.title = title ? `${title} · ${view} · Narratoria` : "Narratoria";
    const banner = BANNERS[connection];
    this.banner.hidden = !banner;
    if (this.announced !== banner) this.banner.replaceChildren(h("span", {}, ...coded(banner ?? "")));
    this.announced = banner;
    this.#badges(world);
  }

  /** A page of its own: nothing of a story that is not there can be read, played or lost. */
  #showGone() {
    if (this.gone) return;
    this.gone = h("div", { class: "empty gone", role: "alert" }, icon("book"), h("h1", { text: "This story is not here" }),
      h("p", { text: "It is not on the server any more, or never was: it may have been deleted, or be kept in another folder or on another computer." }),
      this.game.stream?.reason ? h("p", { class: "quiet", dir: "auto", text: this.game.stream.reason }) : "",
      h("a", { class: "button filled", href: "/" }, icon("home"), h("span", { text: "To the library" })));
    this.main.replaceChildren(this.gone);
    this.title.hidden = this.banner.hidden = this.rail.hidden = true;
    this.rail.parentElement.classList.add("no-rail");
    document.title = "Not here · Narratoria";
    this.gone.querySelector("a").focus();
  }

  #badges(world) {
    const running = world.running !== null && world.turns.get(world.running)?.calls.some((id) => world.calls.get(id).ended === null);
    this.links[1].querySelector(".badge").hidden = !running;
    if (this.current === "assets") this.seenAssets = world.assets.size;
    this.seenAssets ??= world.session ? world.assets.size : undefined;
    this.links[2].querySelector(".badge").hidden = !(world.assets.size > this.seenAssets);
  }
}
