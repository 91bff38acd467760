/** The memory view: an author's note, lore of one's own, what the story remembers, and what it recalled for the newest turn. */
import { api } from "./api.js";
import { attempt, snackbar } from "./dialogs.js";
import { h, Keyed, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { askImported, editMemory } from "./memoryforms.js";
import { memoryName, why } from "./recall.js";
import { t } from "./words.js";
import { activeTurns } from "./world.js";

/** Of a list, shown at first; and those from which it can be filtered. */
const FIRST = 30;
const MANY = 8;
/** Letters from which a text is cut, until one asks for all of it. */
const LONG = 280;
const LONGEST_NOTE = 4000;
const PLACES = { working: t("memory.working"), "short-term": t("memory.short"), "long-term": t("memory.long"), episodic: t("memory.episodic") };

export class MemoryView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.view = null;
    this.file = h("input", { type: "file", accept: ".json,.png,application/json,image/png", hidden: true, tabindex: "-1", "aria-label": t("memory.file"), on: { change: () => this.#import() } });
    this.buttons = [
      h("button", { class: "button tonal", on: { click: () => this.file.click() } }, icon("upload"), h("span", { text: t("memory.import") })),
      h("button", { class: "button filled", on: { click: () => this.#edit(null) } }, icon("plus"), h("span", { text: t("memory.add") })),
    ];
    this.undo = h("button", { class: "icon-button", "aria-label": t("memory.undo"), title: t("memory.undo"), disabled: true, on: { click: () => this.#takeBack(this.view.lastEdit) } }, icon("undo"));
    this.own = new MemoryList(this, t("memory.own"), t("memory.own_empty"));
    this.story = new MemoryList(this, t("memory.story"), "");
    this.tools = new MemoryList(this, t("memory.tools"), "");
    this.turns = new MemoryList(this, t("memory.turns"), "");
    this.forgotten = new MemoryList(this, t("memory.forgotten"), "");
    this.unseen = h("p", { class: "quiet memory-more" });
    this.older = h("p", { class: "quiet memory-more" });
    this.story.node.append(this.unseen);
    this.turns.node.append(this.older);
    this.remembers = h("p", { class: "quiet", text: t("memory.nothing") });
    this.recalled = h("ul", { class: "recalled" });
    this.recalledNote = h("p", { class: "quiet" });
    this.content = h("div", { class: "memory-content" },
      h("div", { class: "memory-column" }, this.#note(), this.own.node),
      h("div", { class: "memory-column" },
        h("section", { class: "card", "aria-labelledby": "recalled-title" }, h("h2", { id: "recalled-title", text: t("memory.recalled") }), this.recalled, this.recalledNote),
        h("h2", { class: "memory-heading", text: t("memory.remembers") }), this.remembers, this.story.node, this.tools.node, this.turns.node, this.forgotten.node));
    this.node = h("div", { class: "scroll-view" }, h("div", { class: "wide-page memory-page" },
      h("header", { class: "view-head" }, h("h1", { text: t("shell.memory") }), this.undo, ...this.buttons, this.file), this.content));
  }

  #note() {
    this.field = h("textarea", { class: "field", id: "memory-note", rows: 3, maxlength: LONGEST_NOTE, dir: "auto", "aria-describedby": "memory-note-help", placeholder: t("memory.note_example"), on: { input: () => this.#weighNote() } });
    this.help = h("p", { class: "quiet", id: "memory-note-help" });
    this.keep = h("button", { class: "button tonal", text: t("memory.keep_note"), disabled: true, on: { click: () => this.#keepNote() } });
    return h("section", { class: "card memory-note" }, h("h2", {}, h("label", { for: "memory-note", text: t("memory.note") })), this.field, h("div", { class: "memory-note-foot" }, this.help, this.keep));
  }

  #weighNote() {
    this.keep.disabled = !this.view || this.game.busy || this.field.value.trim() === this.view.note;
  }

  async #keepNote() {
    const note = this.field.value;
    if (await this.change({ note }, note.trim() ? t("memory.note_kept") : t("memory.note_gone"))) this.field.focus();
  }

  /** @returns {Promise<boolean>} whether it was done */
  async change(asked, told) {
    const made = await attempt(() => api.changeMemory(this.game.id, asked));
    if (!made) return false;
    if (told) this.offerUndo(told, made.edit);
    await this.load();
    return true;
  }

  offerUndo(told, edit) {
    snackbar(told, { label: t("composer.undo"), run: () => this.#takeBack(edit) });
  }

  async #takeBack(edit) {
    if (await attempt(() => api.undoMemory(this.game.id, edit))) await this.load();
  }

  async #edit(item) {
    const made = await editMemory(item, (asked) => api.changeMemory(this.game.id, asked));
    if (!made) return;
    this.offerUndo(item ? t("memory.changed") : t("memory.added"), made.edit);
    await this.load();
  }

  async #import() {
    const [file] = this.file.files;
    this.file.value = ""; // the same file may be chosen again
    if (!file) return;
    const made = await attempt(() => api.importLore(this.game.id, file));
    if (!made) return;
    await this.load();
    if (await askImported(made) === "undo") await this.#takeBack(made.edit);
  }

  /** What an item's buttons do. */
  act(item, action) {
    if (action === "edit") return this.#edit(item);
    if (action === "pin") return this.change({ id: item.id, pinned: !item.pinned });
    if (action === "back") return this.change({ id: item.id, forgotten: false });
    return this.change({ id: item.id, forgotten: true }, t("memory.is_forgotten", { name: memoryName(item) }));
  }

  dropBook(book) {
    return this.change({ book, forgotten: true }, t("memory.book_gone", { book }));
  }

  async load() {
    const [asked] = [this.asked = (this.asked ?? 0) + 1];
    const view = await api.memory(this.game.id).catch(() => null);
    if (!view || asked !== this.asked) return;
    const untouched = !this.view || this.field.value.trim() === this.view.note;
    this.view = view;
    if (untouched) this.field.value = view.note;
    this.#draw();
  }

  update() {
    const { world, busy } = this.game;
    const last = activeTurns(world).at(-1);
    const key = `${world.memoryRev} ${last?.turn} ${last?.outcome} ${world.redo.length}`;
    this.#showRecalled(last);
    if (this.busy !== busy) {
      this.busy = busy;
      for (const button of this.buttons) button.disabled = busy;
      this.#weighNote();
      if (this.view) this.#draw();
    }
    if (busy || !this.game.opened || this.key === key) return;
    this.key = key;
    this.load();
  }

  #showRecalled(turn) {
    const recalled = turn?.recalled ?? [];
    const key = JSON.stringify(recalled);
    if (key === this.shownRecalled) return;
    this.shownRecalled = key;
    this.recalled.hidden = !recalled.length;
    this.recalled.replaceChildren(...recalled.map((one) => h("li", {}, h("strong", { dir: "auto", text: memoryName(one) }), " ", h("span", { class: "quiet", dir: "auto", text: why(one) }), h("p", { class: "recalled-text", dir: "auto", text: one.text }))));
    setText(this.recalledNote, recalled.length ? "" : t("memory.none_recalled"));
  }

  #draw() {
    const { own, remembered, unseen, olderTurns, read, note, lastEdit } = this.view;
    if (this.undo === document.activeElement && lastEdit === null) document.getElementById("main").focus();
    this.undo.disabled = lastEdit === null || this.game.busy;
    const live = remembered.filter((item) => !item.forgotten);
    this.own.show(own);
    this.story.show(live.filter((item) => item.kind === "lore" || item.kind === "character"), unseen > 0);
    this.tools.show(live.filter((item) => item.kind === "memory"));
    this.turns.show(live.filter((item) => item.kind === "turn"));
    this.forgotten.show(remembered.filter((item) => item.forgotten));
    this.remembers.hidden = live.length > 0 || unseen > 0;
    setText(this.unseen, unseen ? t("memory.unseen", { count: unseen }) : "");
    setText(this.older, olderTurns ? t("memory.older", { count: olderTurns }) : "");
    setText(this.help, read ? t("memory.note_read") : t("memory.note_unread"));
    if (!note && !this.field.value) this.keep.disabled = true;
    this.#weighNote();
  }

  /** Deep link: #memory/<id>. @returns {boolean} whether the memory is here */
  show(id) {
    if (!this.view) return false;
    if (id === "note") this.field.focus();
    else if (![this.own, this.story, this.tools, this.turns, this.forgotten].some((list) => list.reveal(id))) snackbar(t("memory.not_there"));
    return true;
  }
}

/** A list of memories under a heading: filtered where it is long, and drawn in parts. */
class MemoryList {
  /** @param {MemoryView} view @param {string} title @param {string} empty what is said when there are none */
  constructor(view, title, empty) {
    this.view = view;
    this.most = FIRST;
    this.items = [];
    this.heading = h(empty ? "h2" : "h3", { text: title });
    this.filter = h("input", { type: "search", placeholder: t("memory.filter"), "aria-label": t("memory.filter_list", { title }), hidden: true, on: { input: () => { this.most = FIRST; this.#draw(); } } });
    this.empty = empty ? h("p", { class: "quiet memory-empty", text: empty }) : null;
    this.list = h("div", { class: "memories" });
    this.keyed = new Keyed(this.list);
    this.more = h("button", { class: "button text", hidden: true, on: { click: () => { this.most *= 4; this.#draw(); } } });
    this.books = h("div", { class: "memory-books" });
    this.node = h("section", { class: "memory-list" }, h("div", { class: "section-head" }, this.heading, this.filter), this.books, this.empty, this.list, this.more);
  }

  show(items, keep = false) {
    this.items = items;
    this.node.hidden = !items.length && !this.empty && !keep;
    if (this.empty) this.empty.hidden = items.length > 0;
    this.filter.hidden = items.length < MANY;
    this.#showBooks();
    this.#draw();
  }

  /** The files that some of it came from; each can be taken out whole. */
  #showBooks() {
    const counts = new Map();
    for (const { book } of this.items) if (book) counts.set(book, (counts.get(book) ?? 0) + 1);
    this.books.replaceChildren(...[...counts].map(([book, count]) => h("span", { class: "chip book" }, icon("book"), h("span", { dir: "auto", text: `${book} · ${count}` }),
      h("button", { class: "icon-button", "aria-label": t("memory.take_out", { book }), title: t("memory.take_it_out"), disabled: this.view.game.busy, on: { click: () => this.view.dropBook(book) } }, icon("close")))));
  }

  #draw() {
    const words = this.filter.hidden ? "" : this.filter.value.trim().toLowerCase();
    const found = words ? this.items.filter((item) => [item.name, item.text, ...item.keywords].some((text) => text.toLowerCase().includes(words))) : this.items;
    const shown = found.toSorted((one, other) => Number(other.pinned) - Number(one.pinned)).slice(0, this.most);
    this.keyed.show(shown, (item) => item.id, (item) => new MemoryCard(this.view, item, this.empty ? "h3" : "h4"));
    this.more.hidden = found.length <= shown.length;
    setText(this.more, t("memory.more", { number: found.length - shown.length }));
  }

  reveal(id) {
    const at = this.items.findIndex((item) => item.id === id);
    if (at < 0) return false;
    this.filter.value = "";
    this.most = Math.max(this.most, this.items.length);
    this.#draw();
    const { node } = this.keyed.parts.get(id);
    node.scrollIntoView({ block: "center" });
    node.focus();
    return true;
  }
}

/** One memory; its parts are made once and only changed. */
class MemoryCard {
  constructor(view, item, heading) {
    this.view = view;
    this.name = h(heading, { class: "memory-name", dir: "auto" });
    this.text = h("p", { class: "memory-text", dir: "auto" });
    this.whole = h("button", { class: "link", on: { click: () => { this.open = !this.open; this.#showText(); } } });
    this.facts = h("p", { class: "memory-facts" });
    this.pin = this.#button("pin", "pin");
    this.edit = this.#button("edit", "edit");
    this.forget = this.#button("trash", "forget");
    this.back = this.#button("undo", "back");
    this.node = h("article", { class: "card memory", tabindex: "-1" }, h("header", {}, this.name, h("div", { class: "memory-actions" }, this.pin, this.edit, this.back, this.forget)), this.text, this.whole, this.facts);
    this.update(item);
  }

  #button(symbol, action) {
    return h("button", { class: "icon-button", on: { click: () => this.view.act(this.item, action) } }, icon(symbol));
  }

  update(item) {
    const { busy } = this.view.game;
    const key = JSON.stringify([item, busy]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.item = item;
    const name = memoryName(item);
    setText(this.name, name);
    this.node.classList.toggle("pinned", item.pinned);
    this.node.classList.toggle("forgotten", item.forgotten);
    for (const [button, label, shown] of [
      [this.pin, item.pinned ? t("memory.unpin", { name }) : t("memory.pin", { name }), !item.forgotten],
      [this.edit, t("memory.edit", { name }), !item.forgotten && item.editable],
      [this.forget, t("memory.forget", { name }), !item.forgotten],
      [this.back, t("memory.again", { name }), item.forgotten],
    ]) {
      button.hidden = !shown;
      button.disabled = busy;
      setAttribute(button, "aria-label", label);
      setAttribute(button, "title", label);
    }
    setAttribute(this.pin, "aria-pressed", String(item.pinned));
    this.#showText();
    this.#showFacts();
  }

  #showText() {
    const { text } = this.item;
    const long = text.length > LONG;
    setText(this.text, long && !this.open ? `${text.slice(0, LONG)}…` : text);
    this.whole.hidden = !long;
    setText(this.whole, this.open ? t("memory.less") : t("memory.all"));
    setAttribute(this.whole, "aria-expanded", String(Boolean(this.open)));
  }

  #showFacts() {
    const { keywords, always, pinned, edited, turns, id, kind, book } = this.item;
    const marks = keywords.slice(0, 12).map((text) => h("span", { class: "keyword", dir: "auto", text }));
    if (keywords.length > 12) marks.push(h("span", { class: "quiet", text: t("memory.more_keywords", { number: keywords.length - 12 }) }));
    const said = [
      kind === "character" ? t("memory.character") : "", pinned ? t("memory.is_pinned") : "", always && !pinned ? t("memory.is_always") : "", edited ? t("memory.is_edited") : "", book ? t("memory.from", { book }) : "",
      kind === "memory" ? PLACES[id.split(":")[1]] ?? "" : "",
      turns.length ? t("memory.recalled_for", { turns: turns.join(", "), count: turns.length }) : "",
    ].filter(Boolean).join(" · ");
    this.facts.replaceChildren(...marks, said ? h("span", { class: "quiet", dir: "auto", text: said }) : "");
    this.facts.hidden = !this.facts.textContent;
  }
}
