/** Search in the whole story, turns that have not been loaded included: the server finds, and a click goes there. */
import { api } from "./api.js";
import { h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { snackbar } from "./dialogs.js";
import { t } from "./words.js";

/** Milliseconds after the last letter. */
const PAUSE = 180;
const LONGEST_QUERY = 200;
/** Turns in one answer. */
const PART = 50;
const WORDS = "found-words";
const MOST_MARKS = 500;
/** Letters of a turn in which words are marked. */
const MOST_READ = 200_000;
/** As in `story_search.py`, so that what the server found is what is marked. */
const ACCENTS = /[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+/g;

const alike = (text) => text.replace(/[‘’‚‛′]/g, "'").replace(/[“”„‟″]/g, '"').replace(/[‐‑‒–—]/g, "-");
// upper case first: it makes one of ß and ss, and of the two forms of sigma
const folded = (text) => alike(text).normalize("NFKD").replace(ACCENTS, "").toUpperCase().toLowerCase();
const wordsOf = (query) => [...alike(query).matchAll(/"([^"]*)"|([^\s"]+)/g)].map((match) => folded((match[1] ?? match[2]).replace(/[*`]/g, "")).trim()).filter(Boolean);

const nameOf = (turn) => (turn ? t("turn.number", { turn }) : t("turn.prologue"));

function countOf(total) {
  return total ? t("search.count", { count: total }) : t("search.none");
}

export class StorySearch {
  /** @param {import("./game.js").Game} game @param {import("./story.js").StoryView} story */
  constructor(game, story) {
    this.game = game;
    this.story = story;
    this.field = h("input", { class: "search-field", type: "search", id: "search-field", "aria-label": t("shell.search"), placeholder: t("shell.search"), maxlength: LONGEST_QUERY, autocomplete: "off", spellcheck: "false", enterkeyhint: "search", dir: "auto" });
    const close = h("button", { class: "icon-button", type: "button", "aria-label": t("search.close"), on: { click: () => this.dialog.close() } }, icon("close"));
    this.count = h("p", { class: "search-count quiet", role: "status" });
    this.list = h("ol", { class: "search-results" });
    this.more = h("button", { class: "button tonal small search-more", type: "button", hidden: true, on: { click: () => this.#search(this.last) } });
    this.dialog = h("dialog", { class: "search", "aria-label": t("shell.search") },
      h("form", { role: "search", class: "search-head" }, icon("search"), this.field, close),
      h("div", { class: "search-body" }, this.count, this.list, this.more));
    this.field.addEventListener("input", () => this.#typed());
    this.dialog.firstElementChild.addEventListener("submit", (event) => { event.preventDefault(); this.#enter(); });
    this.dialog.addEventListener("keydown", (event) => this.#key(event));
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.#closed());
    document.body.append(this.dialog);
    document.addEventListener("keydown", (event) => event.key === "Escape" && unmark());
    game.views.push(() => game.busy && unmark()); // the story goes on
  }

  open() {
    this.list.lang = this.story.node.lang;
    this.dialog.showModal();
    this.field.select();
    if (this.field.value.trim()) this.#search(); // turns have come and gone since
  }

  #typed() {
    clearTimeout(this.timer);
    this.asking?.abort();
    if (!this.field.value.trim()) this.#show([], "");
    else this.timer = setTimeout(() => this.#search(), PAUSE);
  }

  /** Enter goes to the newest of what was found. */
  async #enter() {
    if (this.field.value !== this.found) await this.#search();
    if (this.field.value === this.found) this.list.querySelector("button")?.click();
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [this.field, ...this.list.querySelectorAll("button"), ...(this.more.hidden ? [] : [this.more])];
    const next = stops[stops.indexOf(document.activeElement) + step];
    if (!step || !next) return;
    event.preventDefault();
    next.focus();
  }

  /** @param {number} [before] the turn before which to go on */
  async #search(before) {
    clearTimeout(this.timer);
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const query = this.field.value;
    try {
      const { total, turns } = await api.find(this.game.id, query, before, PART, asking.signal);
      if (asking.signal.aborted) return;
      this.found = query;
      if (before === undefined) this.#show(turns, countOf(total));
      else this.#add(turns);
      const left = total - turns.length;
      this.last = turns.at(-1)?.turn;
      if (before !== undefined && !left) this.list.lastElementChild.firstElementChild.focus(); // the button goes
      this.more.hidden = !left;
      setText(this.more, t("search.more", { more: Math.min(left, PART), left }));
    } catch (error) {
      if (!asking.signal.aborted) this.#show([], error.message);
    }
  }

  #show(turns, words) {
    if (!turns.length) this.found = undefined;
    setText(this.count, words);
    this.list.replaceChildren();
    this.more.hidden = true;
    this.dialog.lastElementChild.scrollTop = 0;
    this.#add(turns);
  }

  #add(turns) {
    this.list.append(...turns.map((hit) => {
      const excerpt = hit.excerpt.map(({ text, found }) => (found ? h("mark", { text }) : text));
      const button = h("button", { class: hit.said ? "search-hit said" : "search-hit", type: "button", on: { click: () => this.#go(hit, button) } },
        h("span", { class: "search-turn quiet", text: hit.said ? t("search.said", { turn: nameOf(hit.turn) }) : nameOf(hit.turn) }),
        h("span", { class: "visually-hidden", text: ": " }), h("span", { class: "search-excerpt", dir: "auto" }, ...excerpt));
      return h("li", {}, button);
    }));
  }

  /** Go to a turn. Older ones may have to come first; until then the list stays. */
  #go({ turn, newer }, button) {
    for (const busy of this.list.querySelectorAll("[aria-busy]")) busy.removeAttribute("aria-busy");
    button.setAttribute("aria-busy", "true");
    const words = wordsOf(this.found);
    if (location.hash.slice(1).split("/")[0] !== "narrative") location.hash = "#narrative";
    this.story.goTo(turn, newer, (part) => {
      this.dialog.close();
      if (!part) return snackbar(t("search.undone"));
      part.focus();
      return mark(part.node, words);
    });
  }

  #closed() {
    this.asking?.abort();
    clearTimeout(this.timer);
    this.story.stay();
    for (const busy of this.list.querySelectorAll("[aria-busy]")) busy.removeAttribute("aria-busy");
  }
}

function unmark() {
  globalThis.CSS?.highlights?.delete(WORDS);
}

/** Mark words in a turn, where a browser can mark ranges. @returns {Range|null} the first of them */
function mark(turn, words) {
  unmark();
  const ranges = [];
  for (const block of turn.querySelectorAll(".prompt, .narration > *")) {
    if (ranges.length < MOST_MARKS) ranges.push(...places(block, words));
  }
  if (ranges.length && globalThis.CSS?.highlights) CSS.highlights.set(WORDS, new Highlight(...ranges.slice(0, MOST_MARKS)));
  return ranges[0] ?? null;
}

/** Where words stand in an element, also where a part of them is in italics. @returns {Range[]} in the order of the text */
function places(block, words) {
  let text = "";
  /** The letter each folded one comes from. @type {[Text, number, number][]} */
  const letters = [];
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && letters.length < MOST_READ; node = walker.nextNode()) {
    let at = 0;
    for (const letter of node.data) {
      const space = /\s/.test(letter);
      const plain = space ? (text.endsWith(" ") ? "" : " ") : folded(letter);
      text += plain;
      for (let index = 0; index < plain.length; index += 1) letters.push([node, at, at + letter.length]);
      at += letter.length;
    }
  }
  const found = [];
  for (const word of words) {
    for (let at = text.indexOf(word); at >= 0 && found.length < MOST_MARKS; at = text.indexOf(word, at + word.length)) {
      const [first, last] = [letters[at], letters[at + word.length - 1]];
      const range = new Range();
      range.setStart(first[0], first[1]);
      range.setEnd(last[0], last[2]);
      found.push({ at, range });
    }
  }
  return found.sort((one, other) => one.at - other.at).map(({ range }) => range);
}
