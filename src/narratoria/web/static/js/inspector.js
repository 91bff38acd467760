/** The state as raw JSON: search in it, copy it. */
import { snackbar } from "./dialogs.js";
import { h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

const MOST_MATCHES = 2000;

export class Inspector {
  constructor() {
    this.text = "";
    this.matches = [];
    this.at = -1;
    this.search = h("input", { type: "search", placeholder: t("inspector.search"), "aria-label": t("inspector.search_json") });
    this.count = h("span", { class: "quiet", "aria-live": "polite" });
    const copy = h("button", { class: "button text small", on: { click: () => this.#copy() } }, icon("copy"), h("span", { text: t("page.copy") }));
    this.pre = h("pre", { class: "json", tabindex: "0", role: "group", "aria-label": t("inspector.json") });
    this.node = h("div", { class: "inspector" }, h("div", { class: "inspector-bar" }, this.search, this.count, copy), this.pre);
    this.search.addEventListener("input", () => this.#find(true));
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.#step(event.shiftKey ? -1 : 1);
    });
  }

  show(state) {
    if (state === this.state) return;
    this.state = state;
    this.text = JSON.stringify(state, null, 2);
    setText(this.pre, this.text);
    this.#find(false);
  }

  /** The first match is shown when somebody searches, and not when the state changes under a reader. */
  #find(scroll) {
    const words = this.search.value.toLowerCase();
    const node = this.pre.firstChild;
    this.matches = [];
    this.at = -1;
    const text = this.text.toLowerCase();
    for (let at = words ? text.indexOf(words) : -1; at >= 0 && this.matches.length < MOST_MATCHES; at = text.indexOf(words, at + words.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + words.length);
      this.matches.push(range);
    }
    this.#paint();
    if (this.matches.length) this.#step(1, scroll);
    else setText(this.count, words ? t("inspector.none") : "");
  }

  /** Marks are drawn over the text, not put into it: the selection and the copy stay clean. */
  #paint() {
    if (!globalThis.Highlight) return;
    CSS.highlights.set("found", new Highlight(...this.matches));
    CSS.highlights.set("found-here", new Highlight(...this.matches.slice(this.at, this.at + 1).filter(() => this.at >= 0)));
  }

  #step(by, scroll = true) {
    const { length } = this.matches;
    if (!length) return;
    this.at = (this.at + by + length) % length;
    setText(this.count, length === MOST_MATCHES ? t("inspector.place_or_more", { place: this.at + 1, total: length }) : t("media.place", { place: this.at + 1, total: length }));
    this.#paint();
    if (!scroll) return;
    const box = this.matches[this.at].getBoundingClientRect();
    const frame = this.pre.getBoundingClientRect();
    this.pre.scrollTop += box.top - frame.top - frame.height / 2;
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.text);
      snackbar(t("inspector.copied"));
    } catch {
      getSelection().selectAllChildren(this.pre);
      snackbar(t("page.copy_yourself"));
    }
  }
}
