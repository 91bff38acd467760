/**
 * The state as a tree a keyboard can walk (ARIA tree pattern): arrows move, open and close, Home and End jump,
 * letters search, * opens the siblings. Rows are flat elements with `aria-level`; a row that stays is never remade.
 */
import { h, Keyed, setAttribute, setText } from "./dom.js";
import { pointer } from "./merge.js";

/** A wide node shows this many children, then a row that shows more of them. */
const PAGE = 200;
const OPEN_AT_FIRST = 2;

/** @typedef {{path: string, key: string, value: any, level: number, position: number, size: number, branch: boolean, open: boolean, more?: number, parent: string}} TreeRow */

export class StateTree {
  constructor() {
    this.open = new Set();
    this.closed = new Set();
    this.limits = new Map();
    this.focusPath = null;
    this.node = h("div", { class: "tree", role: "tree", "aria-label": "State of the world" });
    this.rows = new Keyed(this.node);
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("click", (event) => this.#click(event));
  }

  /** @param {any} state @param {Map<string, "changed"|"within"|"provisional">} marks by path */
  show(state, marks) {
    this.shown = [state, marks];
    /** @type {TreeRow[]} */
    this.list = [];
    this.#collect(state, "", 1);
    if (!this.list.some((row) => row.path === this.focusPath)) this.focusPath = this.list[0]?.path ?? null;
    this.rows.show(this.list, (row) => row.path, () => this.#row());
  }

  #collect(value, path, level) {
    const entries = Object.entries(value);
    const limit = this.limits.get(path) ?? PAGE;
    entries.slice(0, limit).forEach(([key, child], index) => {
      const childPath = `${path}/${pointer(key)}`;
      const branch = child !== null && typeof child === "object" && Object.keys(child).length > 0;
      const open = branch && (this.open.has(childPath) || (level <= OPEN_AT_FIRST && !this.closed.has(childPath)));
      this.list.push({ path: childPath, parent: path, key, value: child, level, position: index + 1, size: entries.length, branch, open });
      if (open) this.#collect(child, childPath, level + 1);
    });
    if (entries.length > limit) {
      this.list.push({ path: `${path}/ more`, parent: path, key: "", value: null, level, position: limit + 1, size: entries.length, branch: false, open: false, more: entries.length - limit });
    }
  }

  #row() {
    const key = h("span", { class: "tree-key", dir: "auto" });
    const value = h("span", { class: "tree-value", dir: "auto" });
    const mark = h("span", { class: "tree-mark" });
    const node = h("div", { class: "tree-row", role: "treeitem" }, h("span", { class: "tree-arrow", "aria-hidden": "true" }), key, value, mark);
    const update = (row) => {
      node.treePath = row.path;
      node.style.setProperty("--level", row.level - 1);
      for (const [name, content] of [["aria-level", row.level], ["aria-posinset", row.position], ["aria-setsize", row.size], ["aria-expanded", row.branch ? row.open : null], ["tabindex", row.path === this.focusPath ? 0 : -1]]) {
        setAttribute(node, name, content === false && name === "aria-expanded" ? "false" : content);
      }
      const state = this.shown[1].get(row.path) ?? "";
      setAttribute(node, "class", `tree-row ${state} ${row.more ? "more" : ""} ${typeOf(row.value)}`);
      setText(mark, row.open || state === "within" ? "" : state);
      setText(key, row.more ? `${row.more.toLocaleString("en")} more…` : row.key);
      setText(value, row.more ? "" : preview(row));
    };
    return { node, update };
  }

  #redraw(focus) {
    if (focus !== undefined) this.focusPath = focus;
    this.show(...this.shown);
    if (focus !== undefined) this.rows.parts.get(focus)?.node.focus();
  }

  #toggle(row, open) {
    (open ? this.open : this.closed).add(row.path);
    (open ? this.closed : this.open).delete(row.path);
    this.#redraw(row.path);
  }

  #activate(row) {
    if (row.more) {
      this.limits.set(row.parent, (this.limits.get(row.parent) ?? PAGE) * 5);
      this.#redraw(this.list[this.list.indexOf(row) - 1].path);
    } else if (row.branch) this.#toggle(row, !row.open);
    else this.#redraw(row.path);
  }

  #click(event) {
    const path = event.target.closest("[role=treeitem]")?.treePath;
    const row = this.list.find((one) => one.path === path);
    if (row) this.#activate(row);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.list.findIndex((row) => row.path === this.focusPath);
    const row = this.list[at];
    if (!row) return;
    const go = (to) => this.list[to] && this.#redraw(this.list[to].path);
    const actions = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      Home: () => go(0),
      End: () => go(this.list.length - 1),
      ArrowRight: () => (row.branch && !row.open ? this.#toggle(row, true) : row.open && go(at + 1)),
      ArrowLeft: () => (row.open ? this.#toggle(row, false) : row.parent && this.#redraw(row.parent)),
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
    for (const one of this.list) if (one.parent === row.parent && one.branch) this.open.add(one.path);
    this.#redraw(row.path);
  }

  #find(letter, at) {
    const order = [...this.list.slice(at + 1), ...this.list.slice(0, at + 1)];
    const found = order.find((row) => row.key.toLowerCase().startsWith(letter));
    if (found) this.#redraw(found.path);
  }
}

function typeOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function preview({ value, branch, open }) {
  if (value !== null && typeof value === "object") {
    const count = Object.keys(value).length;
    if (!branch) return Array.isArray(value) ? "empty list" : "empty";
    return open ? "" : Array.isArray(value) ? `${count} in a list` : `${count} inside`;
  }
  return typeof value === "string" ? `“${value}”` : String(value);
}
