/** The library: stories to begin, stories to go on with. */
import { api, ApiError } from "./api.js";
import { ask, attempt, confirm, LONGEST_TITLE, openMenu, snackbar } from "./dialogs.js";
import { cover } from "./cover.js";
import { ago, coded, h } from "./dom.js";
import { icon } from "./icons.js";
import { warningLine } from "./warning.js";
import { language, t } from "./words.js";

/**
 * @typedef {{id: string, title: string, description?: string, author?: string, note?: string, language?: string, cover?: string|null, coverAlt?: string, problem?: string, warning?: string}} Story
 * @typedef {{id: string, title?: string, story?: string, storyTitle?: string, updated: number, turns: number, excerpt?: string, picture?: string|null, parent?: string|null, ending?: string|null, language?: string}} Saved
 */

/** Stories under way that are shown at first: what to begin must not be pushed out of sight. */
const FIRST_SAVED = 4;

const open = (id) => location.assign(`/play/${encodeURIComponent(id)}#narrative`);

export class LibraryView {
  constructor() {
    this.sessions = h("div", { class: "saved-list" });
    this.finished = h("div", { class: "saved-list" });
    this.allButton = h("button", { class: "button text", hidden: true, on: { click: () => this.#showAll() } });
    this.savedSection = h("section", { "aria-labelledby": "saved-title", hidden: true }, h("div", { class: "section-head" }, h("h2", { id: "saved-title", text: t("library.go_on") }), this.allButton), this.sessions);
    this.finishedSection = h("section", { "aria-labelledby": "finished-title", hidden: true }, h("h2", { id: "finished-title", text: t("library.finished") }), this.finished);
    this.stories = h("div", { class: "story-grid" }, ...Array.from({ length: 3 }, () => h("div", { class: "card skeleton" })));
    this.status = h("p", { class: "visually-hidden", role: "status" });
    const file = h("input", { type: "file", hidden: true, accept: ".narratoria" }); // the button asks for it
    file.addEventListener("change", () => {
      const [chosen] = file.files;
      file.value = ""; // so that the same file, once it is mended, can be chosen again
      if (chosen) this.#import(chosen);
    });
    const importButton = h("button", { class: "button tonal", on: { click: () => file.click() } }, icon("upload"), h("span", { text: t("library.import") }));
    this.node = h("div", { class: "scroll-view library" }, h("div", { class: "wide-page" },
      h("header", { class: "library-head" }, h("div", {}, h("h1", { text: "Narratoria" }), h("p", { class: "quiet", text: t("library.motto") })), importButton, file),
      this.status, this.savedSection, h("section", { "aria-labelledby": "stories-title" }, h("h2", { id: "stories-title", tabindex: "-1", text: t("library.begin_story") }), this.stories), this.finishedSection));
  }

  async load() {
    const [stories, sessions] = await Promise.all([attempt(api.stories), attempt(api.sessions)]);
    this.#showStories(stories);
    this.#showSessions(sessions ?? [], new Map((stories ?? []).map((story) => [story.id, story])));
    this.status.textContent = `${t("library.stories", { count: stories?.length ?? 0 })}, ${t("library.saved", { count: sessions?.length ?? 0 })}`;
  }

  /** @param {Story[]|undefined} stories */
  #showStories(stories) {
    if (!stories) {
      const again = h("button", { class: "button filled", text: t("page.again"), on: { click: () => this.load() } });
      this.stories.replaceChildren(h("div", { class: "empty" }, icon("plug"), h("h2", { text: t("library.unread") }), h("p", {}, ...coded(t("library.still_running"))), again));
    } else if (!stories.length) {
      this.stories.replaceChildren(h("div", { class: "empty" }, icon("book"), h("h2", { text: t("library.none") }), h("p", { text: t("library.none_note") })));
    } else this.stories.replaceChildren(...stories.map((story) => this.#storyCard(story)));
  }

  /** A story with a mistake in it stays in sight, with the mistake: whoever writes it looks for it here. */
  #brokenCard(story) {
    return h("article", { class: "card story-card broken" },
      h("div", { class: "card-text" },
        h("header", {}, h("div", {}, h("h3", { text: story.title, dir: "auto" }), h("p", { class: "quiet", text: t("library.unplayable") })), icon("warn")),
        h("p", { class: "card-problem" }, h("code", { text: story.problem })),
        h("p", { class: "card-note" }, ...coded(t("library.mend")))));
  }

  #storyCard(story) {
    if (story.problem) return this.#brokenCard(story);
    const begin = async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      const made = await attempt(() => api.create(story.id));
      if (made) open(made.id);
      else button.disabled = false;
    };
    return h("article", { class: "card story-card", lang: story.language },
      h("div", { class: "card-picture" }, story.cover ? h("img", { class: "backdrop", src: api.assetUrl(story.cover), alt: "", loading: "lazy" }) : "", picture(story.cover, story.id, story.coverAlt)),
      h("div", { class: "card-text" },
        h("header", {}, h("div", {}, h("h3", { text: story.title, dir: "auto" }), story.author ? h("p", { class: "quiet", text: t("library.by", { author: story.author }), dir: "auto" }) : ""),
          h("button", { class: "button filled", lang: language(), dir: document.documentElement.dir || "ltr", "aria-label": t("library.begin_named", { title: story.title }), on: { click: begin } }, icon("book"), h("span", { text: t("library.begin") }))),
        h("p", { text: story.description ?? "", dir: "auto" }), story.note ? h("p", { class: "card-note", text: story.note, dir: "auto" }) : "",
        story.warning ? warningLine(story.warning) : ""));
  }

  /** @param {Saved[]} sessions @param {Map<string, Story>} stories */
  #showSessions(sessions, stories) {
    const cards = (list) => list.map((saved) => this.#savedCard(saved, stories.get(saved.story)));
    const [open, ended] = [sessions.filter((saved) => !saved.ending), sessions.filter((saved) => saved.ending)];
    this.savedSection.hidden = !open.length;
    this.finishedSection.hidden = !ended.length;
    this.sessions.replaceChildren(...cards(open));
    this.finished.replaceChildren(...cards(ended));
    const few = !this.all && open.length > FIRST_SAVED;
    this.allButton.hidden = !few;
    this.allButton.textContent = t("library.show_all", { count: open.length });
    if (few) for (const card of [...this.sessions.children].slice(FIRST_SAVED)) card.hidden = true;
  }

  #showAll() {
    this.all = true;
    this.allButton.hidden = true;
    for (const card of this.sessions.children) card.hidden = false;
    this.sessions.children[FIRST_SAVED].querySelector("a").focus();
  }

  #savedCard(saved, story) {
    const title = saved.title || story?.title || saved.id;
    const more = h("button", { class: "icon-button", "data-session": saved.id, "aria-label": t("library.actions", { title }), "aria-haspopup": "menu", "aria-expanded": "false" }, icon("more"));
    more.addEventListener("click", () => openMenu(more, [
      { label: t("library.rename_menu"), icon: "edit", run: () => this.#rename(saved, title) },
      { label: t("turn.branch_here"), icon: "branch", run: () => this.#branch(saved, title) },
      { label: t("library.export"), icon: "download", run: () => this.#export(saved, title) },
      { label: t("library.epub"), icon: "book", run: () => this.#export(saved, title, "epub") },
      { label: t("library.html"), icon: "book", run: () => this.#export(saved, title, "html") },
      { label: t("library.markdown"), icon: "book", run: () => this.#export(saved, title, "markdown") },
      { label: t("library.delete_menu"), icon: "trash", run: () => this.#remove(saved, title) },
    ]));
    const facts = [saved.turns === 0 ? t("library.at_beginning") : t("library.turns", { count: saved.turns }), saved.updated ? ago(saved.updated) : "", saved.parent ? t("library.branch") : ""].filter(Boolean).join(" · ");
    return h("article", { class: "card saved-card" },
      h("a", { class: "saved-link", href: `/play/${encodeURIComponent(saved.id)}#narrative`, "aria-label": saved.ending ? t("library.continue_ended", { title, ending: saved.ending }) : t("library.continue", { title }) },
        h("div", { class: "card-picture" }, picture(saved.picture ?? story?.cover, saved.story ?? saved.id)),
        h("div", { class: "card-text" }, h("h3", { text: title, dir: "auto" }), saved.ending ? h("p", { class: "ended" }, icon("spark"), h("span", { text: t("library.ended", { ending: saved.ending }), dir: "auto", lang: saved.language })) : "",
          h("p", { class: "excerpt", text: saved.excerpt || t("library.not_begun"), dir: "auto", lang: saved.excerpt ? saved.language : null }), h("p", { class: "quiet", text: facts }))), more);
  }

  /** A title is one line: what a text area would let in has no place on a card. */
  async #rename(saved, title) {
    const field = h("input", { class: "field", id: "title-field", maxlength: LONGEST_TITLE, value: title, autocomplete: "off", dir: "auto", autofocus: true });
    const check = () => { field.form.querySelector('[value="ok"]').disabled = !field.value.trim(); };
    field.addEventListener("input", check);
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return; // the first button would be Close
      event.preventDefault();
      const ok = field.form.querySelector('[value="ok"]');
      if (!ok.disabled) field.form.requestSubmit(ok);
    });
    queueMicrotask(() => { field.focus(); field.select(); });
    const answer = await ask(t("library.rename"), [h("label", { for: "title-field", text: t("library.name") }), field], [{ label: t("page.close"), value: "" }, { label: t("library.rename"), value: "ok", kind: "filled" }]);
    if (answer !== "ok" || !(await this.#attempt(title, () => api.rename(saved.id, field.value)))) return;
    await this.load();
    this.node.querySelector(`[data-session="${CSS.escape(saved.id)}"]`)?.focus();
  }

  async #branch(saved, title) {
    const made = await this.#attempt(title, () => api.branch(saved.id));
    if (made) open(made.id);
  }

  /** Asked for first: what is refused is said here, and not on a page, or in a file, of its own. */
  async #export(saved, title, format) {
    if (await this.#attempt(title, () => api.session(saved.id))) h("a", { href: api.exportUrl(saved.id, format), download: "" }).click();
  }

  /** Do something with a story on the list; one that is gone since the list was read leaves it. */
  #attempt(title, action) {
    return attempt(async () => {
      try {
        return (await action()) ?? true;
      } catch (error) {
        if (error.status !== 404) throw error;
        await this.load();
        document.getElementById("stories-title").focus();
        throw new ApiError(t("library.deleted_elsewhere", { title }), 404);
      }
    });
  }

  async #remove(saved, title) {
    if (!(await confirm(t("library.delete_ask", { title }), t("library.delete_note"), t("library.delete")))) return;
    const before = this.#links().findIndex((link) => link.parentElement.querySelector(`[data-session="${CSS.escape(saved.id)}"]`));
    if (!(await this.#attempt(title, () => api.remove(saved.id)))) return;
    snackbar(t("library.deleted", { title }));
    await this.load();
    (this.#links().slice(0, before + 1).at(-1) ?? document.getElementById("stories-title")).focus();
  }

  /** The stories that can be seen, and so can have the focus. */
  #links() {
    return [...this.node.querySelectorAll(".saved-link")].filter((link) => link.checkVisibility());
  }

  async #import(file) {
    const made = await attempt(() => api.importFile(file));
    if (made) open(made.id);
  }
}

function picture(hash, seed, alt = "") {
  return hash ? h("img", { src: api.assetUrl(hash), alt, loading: "lazy" }) : cover(seed);
}
