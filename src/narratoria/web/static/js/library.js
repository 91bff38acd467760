/** The library: stories to begin, stories to go on with. */
import { api } from "./api.js";
import { attempt, askText, confirm, openMenu, snackbar } from "./dialogs.js";
import { cover } from "./cover.js";
import { ago, h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @typedef {{id: string, title: string, description?: string, author?: string, cover?: string|null}} Story
 * @typedef {{id: string, title?: string, story?: string, storyTitle?: string, updated: number, turns: number, excerpt?: string, picture?: string|null, parent?: string|null}} Saved
 */

const open = (id) => location.assign(`/play/${encodeURIComponent(id)}#narrative`);

export class LibraryView {
  constructor() {
    this.sessions = h("div", { class: "saved-list" });
    this.savedSection = h("section", { "aria-labelledby": "saved-title", hidden: true }, h("h2", { id: "saved-title", text: "Go on with" }), this.sessions);
    this.stories = h("div", { class: "story-grid" }, ...Array.from({ length: 3 }, () => h("div", { class: "card skeleton" })));
    this.status = h("p", { class: "visually-hidden", role: "status" });
    const file = h("input", { type: "file", hidden: true, accept: ".narratoria" }); // the button asks for it
    file.addEventListener("change", () => file.files[0] && this.#import(file.files[0]));
    const importButton = h("button", { class: "button tonal", on: { click: () => file.click() } }, icon("upload"), h("span", { text: "Import" }));
    this.node = h("div", { class: "scroll-view library" }, h("div", { class: "wide-page" },
      h("header", { class: "library-head" }, h("div", {}, h("h1", { text: "Narratoria" }), h("p", { class: "quiet", text: "Say what you do. The story answers." })), importButton, file),
      this.status, this.savedSection, h("section", { "aria-labelledby": "stories-title" }, h("h2", { id: "stories-title", text: "Begin a story" }), this.stories)));
  }

  async load() {
    const [stories, sessions] = await Promise.all([attempt(api.stories), attempt(api.sessions)]);
    this.#showStories(stories);
    this.#showSessions(sessions ?? [], new Map((stories ?? []).map((story) => [story.id, story])));
    this.status.textContent = `${stories?.length ?? 0} stories, ${sessions?.length ?? 0} saved`;
  }

  /** @param {Story[]|undefined} stories */
  #showStories(stories) {
    if (!stories) {
      const again = h("button", { class: "button filled", text: "Try again", on: { click: () => this.load() } });
      this.stories.replaceChildren(h("div", { class: "empty" }, icon("plug"), h("h2", { text: "The stories could not be read" }), h("p", { text: "Is `narratoria play` still running in its terminal?" }), again));
    } else if (!stories.length) {
      this.stories.replaceChildren(h("div", { class: "empty" }, icon("book"), h("h2", { text: "No stories here yet" }), h("p", { text: "Put a story into the stories folder and load this page again." })));
    } else this.stories.replaceChildren(...stories.map((story) => this.#storyCard(story)));
  }

  #storyCard(story) {
    const begin = async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      const made = await attempt(() => api.create(story.id));
      if (made) open(made.id);
      else button.disabled = false;
    };
    return h("article", { class: "card story-card" },
      h("div", { class: "card-picture" }, picture(story.cover, story.id)),
      h("div", { class: "card-text" }, h("h3", { text: story.title, dir: "auto" }), story.author ? h("p", { class: "quiet", text: `by ${story.author}` }) : "",
        h("p", { text: story.description ?? "", dir: "auto" })),
      h("button", { class: "button filled", "aria-label": `Begin ${story.title}`, on: { click: begin } }, icon("book"), h("span", { text: "Begin" })));
  }

  /** @param {Saved[]} sessions @param {Map<string, Story>} stories */
  #showSessions(sessions, stories) {
    this.savedSection.hidden = !sessions.length;
    this.sessions.replaceChildren(...sessions.map((saved) => this.#savedCard(saved, stories.get(saved.story))));
  }

  #savedCard(saved, story) {
    const title = saved.title || story?.title || saved.id;
    const more = h("button", { class: "icon-button", "aria-label": `Actions for ${title}`, "aria-haspopup": "menu", "aria-expanded": "false" }, icon("more"));
    more.addEventListener("click", () => openMenu(more, [
      { label: "Rename…", icon: "edit", run: () => this.#rename(saved, title) },
      { label: "Branch from here", icon: "branch", run: () => this.#branch(saved) },
      { label: "Export", icon: "download", run: () => location.assign(api.exportUrl(saved.id)) },
      { label: "Delete…", icon: "trash", run: () => this.#remove(saved, title) },
    ]));
    const facts = [saved.turns === 1 ? "1 turn" : `${saved.turns} turns`, saved.updated ? ago(saved.updated) : "", saved.parent ? "a branch" : ""].filter(Boolean).join(" · ");
    return h("article", { class: "card saved-card" },
      h("a", { class: "saved-link", href: `/play/${encodeURIComponent(saved.id)}#narrative`, "aria-label": `Continue ${title}` },
        h("div", { class: "card-picture" }, picture(saved.picture ?? story?.cover, saved.story ?? saved.id)),
        h("div", { class: "card-text" }, h("h3", { text: title, dir: "auto" }), h("p", { class: "excerpt", text: saved.excerpt ?? "Not begun yet.", dir: "auto" }), h("p", { class: "quiet", text: facts }))), more);
  }

  async #rename(saved, title) {
    const name = await askText("Rename", "Name of this story", title, "Rename");
    if (name && (await attempt(() => api.rename(saved.id, name).then(() => true)))) await this.load();
  }

  async #branch(saved) {
    const made = await attempt(() => api.branch(saved.id));
    if (made) open(made.id);
  }

  async #remove(saved, title) {
    if (!(await confirm(`Delete “${title}”?`, "Its turns, pictures and state are removed from this computer. Export it first to keep a copy.", "Delete"))) return;
    if (await attempt(() => api.remove(saved.id).then(() => true))) {
      snackbar(`“${title}” is deleted.`);
      await this.load();
    }
  }

  async #import(file) {
    const made = await attempt(() => api.importFile(file));
    if (made) open(made.id);
  }
}

function picture(hash, seed) {
  return hash ? h("img", { src: api.assetUrl(hash), alt: "", loading: "lazy" }) : cover(seed);
}
