/**
 * Every event of a call, however many: only the rows in sight exist, and their data comes in parts as one scrolls.
 * Arrow keys move, and what is chosen is shown whole below.
 */
import { attempt } from "./dialogs.js";
import { fileSize, h, setAttribute, setText } from "./dom.js";
import { numeral, t } from "./words.js";

const ROW = 26;
const SPARE = 6;
const TALLEST = 12;
export const PART = 200;

const KINDS = {
  call_started: t("event.begins"), call_retrying: t("event.retries"), call_finished: t("event.ends"), committed: t("event.kept"),
  state_patch: t("shell.state"), asset: t("event.asset"), asset_stored: t("event.stored"), asset_denied: t("event.refused"),
  ui_event: t("event.shown"), error: t("event.error"), done: t("event.done"),
};

let lists = 0;

export class EventList {
  /**
   * @param {string} name
   * @param {number} total
   * @param {(first: number, most: number) => Promise<{total: number, events: any[]}>} read
   */
  constructor(name, total, read) {
    this.read = read;
    this.total = total;
    this.id = `events-${(lists += 1)}`;
    /** @type {Map<number, any[]|null>} parts by number; null while one is on its way */
    this.parts = new Map();
    this.rows = [];
    this.at = -1;
    this.count = h("p", { class: "quiet", "aria-live": "polite" });
    this.canvas = h("div", { class: "event-canvas", role: "none" });
    this.scroller = h("div", { class: "events", role: "listbox", tabindex: "0", "aria-label": t("event.of", { name }) }, this.canvas);
    this.whole = h("pre", { class: "event-whole", tabindex: "0", role: "group", "aria-label": t("event.chosen"), hidden: true });
    this.node = h("div", { class: "event-list" }, this.count, this.scroller, this.whole);
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
    this.scroller.addEventListener("click", (event) => this.#choose(event.target.closest("[role=option]")?.eventNumber ?? -1));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.grow(total);
  }

  /** The call has gained events. */
  grow(total) {
    this.total = total;
    const last = this.parts.get(Math.floor((total - 1) / PART));
    if (last && last.length < PART) this.parts.delete(Math.floor((total - 1) / PART));
    this.canvas.style.height = `${total * ROW}px`;
    this.scroller.style.height = `${Math.min(Math.max(total, 1), TALLEST) * ROW + 12}px`;
    setText(this.count, total > TALLEST ? t("event.count_scroll", { count: total }) : t("event.count", { count: total }));
    this.draw();
  }

  #event(number) {
    return this.parts.get(Math.floor(number / PART))?.[number % PART];
  }

  async #need(number) {
    const part = Math.floor(number / PART);
    if (this.parts.has(part)) return;
    this.parts.set(part, null);
    const found = await attempt(() => this.read(part * PART, PART));
    if (found) this.parts.set(part, found.events);
    else setTimeout(() => this.parts.delete(part), 2000); // asked for again by the next scroll
    this.draw();
    if (this.at >= 0) this.#showWhole();
  }

  draw() {
    if (!this.scroller.clientHeight) return; // closed
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const fits = Math.ceil(this.scroller.clientHeight / ROW) + 2 * SPARE;
    const last = Math.min(this.total, first + fits);
    while (this.rows.length < last - first) this.rows.push(this.#row());
    this.rows.forEach((row, index) => row.show(first + index < last ? first + index : -1));
    if (first < last) {
      this.#need(first);
      this.#need(last - 1);
    }
    const active = this.at >= first && this.at < last ? `${this.id}-${this.at}` : null;
    setAttribute(this.scroller, "aria-activedescendant", active);
  }

  #row() {
    const [at, kind, text] = [h("span", { class: "event-at" }), h("span", { class: "event-kind" }), h("span", { class: "event-text", dir: "auto" })];
    const node = h("div", { class: "event", role: "option" }, at, kind, text);
    this.canvas.append(node);
    const show = (number) => {
      node.hidden = number < 0;
      node.eventNumber = number;
      if (number < 0) return;
      const event = this.#event(number);
      node.id = `${this.id}-${number}`;
      node.style.transform = `translateY(${number * ROW}px)`;
      for (const [name, value] of [["aria-posinset", number + 1], ["aria-setsize", this.total], ["aria-selected", String(number === this.at)]]) setAttribute(node, name, value);
      setText(at, event ? t("unit.seconds", { value: numeral(event.at, 3) }) : "");
      setText(kind, event ? kindOf(event.event) : "");
      setText(text, event ? summary(event.event) : "…");
      node.classList.toggle("bad", Boolean(event) && isBad(event.event));
    };
    return { node, show };
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.total - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.#choose(Math.min(this.total - 1, Math.max(0, to)));
  }

  #choose(number) {
    if (number < 0) return;
    this.at = number;
    const top = number * ROW;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW + 12 > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = top + ROW + 12 - this.scroller.clientHeight;
    this.draw();
    this.#showWhole();
  }

  #showWhole() {
    const event = this.#event(this.at);
    this.whole.hidden = !event;
    if (event) setText(this.whole, JSON.stringify(event.event, null, 2));
  }
}

function kindOf(event) {
  if (event.type === "log") return t("event.log", { level: event.level });
  return KINDS[event.type] ?? event.type;
}

function isBad(event) {
  return event.type === "error" || event.type === "call_retrying" || (event.type === "log" && event.level === "error") || ((event.type === "done" || event.type === "call_finished") && event.ok === false);
}

/** What an event says, in a line. */
function summary(event) {
  const json = (value) => JSON.stringify(value)?.slice(0, 300) ?? "";
  const words = {
    call_started: () => t("event.attempt", { attempt: event.attempt ?? 1, input: json(event.input ?? {}) }),
    call_retrying: () => t("event.again", { code: event.errorCode, error: event.error, delay: event.delay }),
    call_finished: () => [event.state, event.errorCode, event.error ?? event.message].filter(Boolean).join(" · "),
    committed: () => (event.failed ? t("event.dropped") : t("event.accepted")),
    log: () => event.message,
    state_patch: () => json(event.patch),
    asset: () => `${event.assetId} · ${event.mediaType}`,
    asset_stored: () => `${event.assetId} · ${event.mediaType} · ${fileSize(event.size)}`,
    asset_denied: () => event.reason,
    ui_event: () => `${event.event} ${json(event.payload ?? {})}`,
    error: () => `${event.errorCode}: ${event.errorMessage}`,
    done: () => [event.ok ? t("event.ok") : t("event.not_ok"), event.summary].filter(Boolean).join(" · "),
  };
  return String((words[event.type] ?? (() => json(event)))()).replaceAll("\n", " ⏎ ");
}
