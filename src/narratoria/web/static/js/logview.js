/**
 * A log of any length: only the lines in sight exist as elements. Rows have one height, so the place of a line is
 * a multiplication; the rows in use are written again as one scrolls.
 */
import { clockTime, h, setText } from "./dom.js";
import { t } from "./words.js";

const ROW = 22;
const SPARE = 6;
const TALLEST = 16;
const LEVELS = ["debug", "info", "warn", "error"];

export class LogView {
  /** @param {string} name @param {import("./world.js").LogLine[]} lines it only ever grows */
  constructor(name, lines) {
    this.lines = lines;
    this.level = 0;
    this.words = "";
    /** indices of the lines that pass the filter; null while everything does */
    this.matches = null;
    this.scanned = 0;
    this.following = true;
    this.rows = [];
    this.canvas = h("div", { class: "log-canvas" });
    this.scroller = h("div", { class: "log", role: "group", "aria-label": t("log.of", { name }), tabindex: "0" }, this.canvas);
    this.count = h("span", { class: "quiet log-count" });
    this.nothing = h("p", { class: "log-nothing quiet", hidden: true }, t("log.nothing"), " ",
      h("button", { class: "button text small", text: t("log.every"), on: { click: () => this.#showEverything() } }));
    this.node = h("div", { class: "log-view" }, this.#bar(name), this.scroller, this.nothing);
    this.scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  /** The same log, read again from its beginning. */
  follow(lines) {
    this.lines = lines;
    this.#refilter();
  }

  #bar(name) {
    const level = h("select", { "aria-label": t("log.level", { name }) }, ...LEVELS.map((value, index) => h("option", { value: index, text: index ? t("log.above", { level: value }) : t("log.every_level") })));
    level.addEventListener("change", () => { this.level = Number(level.value); this.#refilter(); });
    const search = h("input", { type: "search", placeholder: t("log.filter"), "aria-label": t("log.filter_named", { name }) });
    search.addEventListener("input", () => { this.words = search.value.toLowerCase(); this.#refilter(); });
    this.controls = { level, search };
    return h("div", { class: "log-bar" }, level, search, this.count);
  }

  #showEverything() {
    this.controls.level.value = "0";
    this.controls.search.value = this.words = "";
    this.level = 0;
    this.#refilter();
    this.scroller.focus();
  }

  #refilter() {
    this.matches = this.level || this.words ? [] : null;
    this.scanned = 0;
    this.update();
  }

  #passes(line) {
    return LEVELS.indexOf(line.level) >= this.level && (!this.words || line.message.toLowerCase().includes(this.words));
  }

  /** Take in what the log has gained. */
  update() {
    if (this.matches) {
      for (; this.scanned < this.lines.length; this.scanned += 1) {
        if (this.#passes(this.lines[this.scanned])) this.matches.push(this.scanned);
      }
    }
    const total = this.matches?.length ?? this.lines.length;
    if (total !== this.total) {
      this.total = total;
      this.canvas.style.height = `${total * ROW}px`;
      this.scroller.style.height = `${Math.min(Math.max(total, 1), TALLEST) * ROW + 16}px`;
      setText(this.count, this.matches ? t("log.lines_of", { count: total, total: this.lines.length }) : t("log.lines", { count: total }));
    }
    this.scroller.hidden = total === 0 && this.matches !== null;
    this.nothing.hidden = !this.scroller.hidden;
    if (this.following) this.scroller.scrollTop = total * ROW;
    this.draw();
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    this.following = scrollTop + clientHeight >= scrollHeight - ROW;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const fits = Math.ceil((this.scroller.clientHeight || TALLEST * ROW) / ROW) + 2 * SPARE;
    const last = Math.min(this.total ?? 0, first + fits);
    while (this.rows.length < last - first) this.rows.push(new Row(this.canvas));
    this.rows.forEach((row, index) => {
      const at = first + index;
      row.show(at < last ? this.lines[this.matches ? this.matches[at] : at] : null, at);
    });
  }
}

class Row {
  constructor(canvas) {
    this.time = h("time");
    this.level = h("span", { class: "level" }); // not by colour alone
    this.message = h("span", { class: "message" });
    this.extra = h("span", { class: "fields" });
    this.node = h("div", { class: "log-line" }, this.time, this.level, this.message, this.extra);
    canvas.append(this.node);
    this.line = undefined;
  }

  show(line, at) {
    if (this.line === line && this.at === at) return;
    this.node.hidden = !line;
    this.line = line;
    if (!line) return;
    if (this.at !== at) this.node.style.transform = `translateY(${at * ROW}px)`;
    this.at = at;
    this.node.className = `log-line ${line.level}`;
    setText(this.time, clockTime(line.ts));
    setText(this.level, line.level);
    setText(this.message, line.message);
    setText(this.extra, fieldText(line.fields));
  }
}

/** Progress is a bar already. */
function fieldText(fields) {
  if (!fields) return "";
  const { progress, ...rest } = fields;
  return Object.keys(rest).length ? JSON.stringify(rest) : "";
}
