/**
 * The state as a tree a keyboard can walk (ARIA tree pattern): arrows move, open and close, Home and End jump,
 * letters search, * opens the siblings. Rows are flat elements with `aria-level`; a row that stays is never remade.
 *
 * Rows come in parts of a hundred. A part that is far from what can be seen is an empty box of about its height, so
 * a world of twenty thousand things costs what a window shows of it.
 */
import { h, Keyed, setAttribute, setText } from "./dom.js";
import { pointer } from "./merge.js";
import { fromRight, t } from "./words.js";

/** A wide node shows this many children, then a row that shows more of them. */
const PAGE = 1000;
const PART = 100;
/** What a row is expected to measure until it has been seen. */
const ROW = 34;
/** A world of no more things than this shows two levels at first; a larger one only the way to what changed. */
const SMALL = 500;
const OPEN_AT_FIRST = 2;
const LONGEST_TEXT = 2000;
const NEAR = "900px";

/** @typedef {{path: string, key: string, value: any, level: number, position: number, size: number, branch: boolean, open: boolean, more?: number, parent: string}} TreeRow */
const MARKS = { changed: t("state.kind_changed"), provisional: t("state.provisional") };

export class StateTree {
  constructor() {
    this.open = new Set();
    this.closed = new Set();
    this.limits = new Map();
    this.focusPath = null;
    /** @type {Part[]} */
    this.parts = [];
    this.node = h("div", { class: "tree", role: "tree", "aria-label": t("state.world") });
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("click", (event) => this.#click(event));
    this.node.addEventListener("focusin", ({ target }) => this.places.has(target.treePath) && target.treePath !== this.focusPath && this.#focus(target.treePath));
    const seen = (entries) => entries.forEach(({ target, isIntersecting }) => target.treePart.sight(isIntersecting));
    // the view scrolls inside the window: the margin of the scroller counts, where the browser knows of it
    this.observer = new IntersectionObserver(seen, { rootMargin: NEAR, scrollMargin: NEAR });
  }

  /** @param {any} state @param {Map<string, "changed"|"within"|"provisional">} marks by path */
  show(state, marks) {
    const focused = this.node.contains(document.activeElement);
    this.shown = [state, marks];
    this.small = isSmall(state);
    /** @type {TreeRow[]} */
    this.list = [];
    this.#collect(state, "", 1);
    this.places = new Map(this.list.map((row, place) => [row.path, place]));
    if (!this.places.has(this.focusPath)) this.focusPath = this.list[0]?.path ?? null;
    this.#divide();
    if (focused && !this.node.contains(document.activeElement)) this.#focus(this.focusPath, { preventScroll: true });
  }

  #collect(value, path, level) {
    const entries = Object.entries(value);
    const limit = this.limits.get(path) ?? PAGE;
    entries.slice(0, limit).forEach(([key, child], index) => {
      const childPath = `${path}/${pointer(key)}`;
      const branch = child !== null && typeof child === "object" && Object.keys(child).length > 0;
      const open = branch && this.#isOpen(childPath, level);
      this.list.push({ path: childPath, parent: path, key, value: child, level, position: index + 1, size: entries.length, branch, open });
      if (open) this.#collect(child, childPath, level + 1);
    });
    if (entries.length > limit) {
      this.list.push({ path: `${path}/ more`, parent: path, key: "", value: null, level, position: limit + 1, size: entries.length, branch: false, open: false, more: entries.length - limit });
    }
  }

  #isOpen(path, level) {
    if (this.closed.has(path)) return false;
    if (this.small) return this.open.has(path) || level <= OPEN_AT_FIRST;
    const mark = this.shown[1].get(path);
    if (mark === "within" || mark === "provisional") this.open.add(path); // and it stays open when the next turn comes
    return this.open.has(path);
  }

  #divide() {
    const count = Math.ceil(this.list.length / PART);
    while (this.parts.length > count) {
      const part = this.parts.pop();
      this.observer.unobserve(part.node);
      part.node.remove();
    }
    while (this.parts.length < count) {
      const part = new Part(this, this.parts.length);
      this.parts.push(part);
      this.node.append(part.node);
      this.observer.observe(part.node);
    }
    for (const part of this.parts) part.draw();
  }

  #partOf(path) {
    return this.parts[Math.floor(this.places.get(path) / PART)];
  }

  makeRow() {
    const key = h("span", { class: "tree-key", dir: "auto" });
    const value = h("span", { class: "tree-value", dir: "auto" });
    const mark = h("span", { class: "tree-mark" });
    const node = h("div", { class: "tree-row", role: "treeitem" }, h("span", { class: "tree-arrow", "aria-hidden": "true" }), h("span", { class: "tree-text" }, key, " ", value), mark);
    const update = (row) => {
      node.treePath = row.path;
      node.style.setProperty("--level", row.level - 1);
      for (const [name, content] of [["aria-level", row.level], ["aria-posinset", row.position], ["aria-setsize", row.size], ["aria-expanded", row.branch ? row.open : null], ["tabindex", row.path === this.focusPath ? 0 : -1]]) {
        setAttribute(node, name, content === false && name === "aria-expanded" ? "false" : content);
      }
      const state = this.shown[1].get(row.path) ?? "";
      setAttribute(node, "class", `tree-row ${state} ${row.path === this.here ? "here" : ""} ${row.more ? "rest" : ""} ${typeOf(row.value)}`);
      setText(mark, MARKS[state] ?? "");
      setText(key, row.more ? t("state.rest", { count: row.more }) : row.key);
      setText(value, row.more ? "" : preview(row));
    };
    return { node, update };
  }

  /** Open the way to a path and put the focus there, or as near as the state still goes. @returns {boolean} whether it is there */
  reveal(path) {
    const keys = path.split("/").slice(1);
    const ways = keys.map((_, depth) => `/${keys.slice(0, depth + 1).join("/")}`);
    for (const way of ways.slice(0, -1)) {
      this.open.add(way);
      this.closed.delete(way);
    }
    this.show(...this.shown);
    const nearest = ways.findLast((way) => this.places.has(way));
    this.here = nearest; // marked until one moves on: after a click, a browser draws no ring around the focus
    if (nearest) this.#focus(nearest);
    return nearest === ways.at(-1);
  }

  #redraw(focus) {
    this.focusPath = focus;
    this.show(...this.shown);
    this.#focus(focus);
  }

  #focus(path, options) {
    const before = this.#partOf(this.focusPath);
    this.focusPath = path;
    if (path !== this.here) this.here = null;
    const part = this.#partOf(path);
    if (before !== part) before?.draw();
    part?.draw();
    part?.rows.parts.get(path)?.node.focus(options);
  }

  #toggle(row, open) {
    (open ? this.open : this.closed).add(row.path);
    (open ? this.closed : this.open).delete(row.path);
    this.#redraw(row.path);
  }

  #activate(row) {
    if (row.more) {
      this.limits.set(row.parent, (this.limits.get(row.parent) ?? PAGE) * 5);
      this.#redraw(this.list[this.places.get(row.path) - 1].path);
    } else if (row.branch) this.#toggle(row, !row.open);
    else this.#focus(row.path);
  }

  #click(event) {
    const row = this.list[this.places.get(event.target.closest("[role=treeitem]")?.treePath)];
    if (row) this.#activate(row);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.places.get(this.focusPath);
    const row = this.list[at];
    if (!row) return;
    const go = (to) => this.list[to] && this.#focus(this.list[to].path);
    const actions = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      Home: () => go(0),
      End: () => go(this.list.length - 1),
      [fromRight() ? "ArrowLeft" : "ArrowRight"]: () => (row.branch && !row.open ? this.#toggle(row, true) : row.open && go(at + 1)),
      [fromRight() ? "ArrowRight" : "ArrowLeft"]: () => (row.open ? this.#toggle(row, false) : row.parent && this.#focus(row.parent)),
      Enter: () => this.#activate(row),
      " ": () => this.#activate(row),
      "*": () => this.#openSiblings(row),
    };
    if (actions[event.key]) actions[event.key]();
    else if (event.key.length === 1) this.#find(event.key.toLowerCase(), at);
    else return;
    event.preventDefault();
  }

  #openSiblings(row) {
    for (const one of this.list) {
      if (one.parent !== row.parent || !one.branch) continue;
      this.open.add(one.path);
      this.closed.delete(one.path);
    }
    this.#redraw(row.path);
  }

  #find(letter, at) {
    const order = [...this.list.slice(at + 1), ...this.list.slice(0, at + 1)];
    const found = order.find((row) => row.key.toLowerCase().startsWith(letter));
    if (found) this.#focus(found.path);
  }
}

/** A hundred rows: there while they are near what is seen, or hold the focus. */
class Part {
  constructor(tree, number) {
    this.tree = tree;
    this.number = number;
    this.near = number === 0;
    this.node = h("div", { class: "tree-part", role: "none" });
    this.node.treePart = this;
    this.rows = new Keyed(this.node);
    this.drawn = 0;
    this.rowHeight = ROW;
  }

  sight(near) {
    if (near === this.near || !this.node.parentNode?.checkVisibility()) return;
    this.near = near;
    this.draw();
  }

  draw() {
    const { list, places, focusPath } = this.tree;
    const first = this.number * PART;
    const rows = list.slice(first, first + PART);
    const at = places.get(focusPath) - first;
    const present = this.near || (at >= 0 && at < PART);
    if (!present && this.drawn) this.rowHeight = this.node.offsetHeight / this.drawn;
    this.drawn = present ? rows.length : 0;
    this.node.style.height = present ? "" : `${rows.length * this.rowHeight}px`;
    this.rows.show(present ? rows : [], (row) => row.path, () => this.tree.makeRow());
  }
}

function isSmall(value) {
  const waiting = [value];
  for (let count = 0; waiting.length; count += 1) {
    if (count + waiting.length > SMALL) return false;
    const one = waiting.pop();
    if (one !== null && typeof one === "object") for (const key in one) waiting.push(one[key]);
  }
  return true;
}

function typeOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function preview({ value, branch, open }) {
  if (value !== null && typeof value === "object") {
    const count = Object.keys(value).length;
    if (!branch) return Array.isArray(value) ? t("state.empty_list") : t("state.empty");
    return open ? "" : Array.isArray(value) ? t("state.in_list", { count }) : t("state.inside", { count });
  }
  if (typeof value !== "string") return String(value);
  return value.length > LONGEST_TEXT ? t("state.long_text", { text: value.slice(0, LONGEST_TEXT), count: value.length }) : t("state.text", { text: value });
}
