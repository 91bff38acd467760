/**
 * Building elements. Text from a story, a tool or a person only ever enters by `textContent` or an attribute:
 * nothing in this page parses markup, but for `prose.js`, which gets it sanitised.
 */
import { language, numeral, t } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Object<string, any>} [props] `class`, `text`, `on: {click: fn}`, `data: {}`; everything else is an attribute
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. @returns {SVGElement} */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "text") node.textContent = value;
    else if (name === "on") for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child || child === 0) node.append(child);
  return node;
}

/** A sentence of ours for `h`, in which `this` stands for something to type. @param {string} text */
export function coded(text) {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 ? h("code", { text: part }) : part));
}

/** A part of an address as text; what was written by hand and is no good stays as it is. */
export function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Set text only when it differs, so that a selection or a screen reader is not disturbed for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/**
 * Make `parent` hold exactly `nodes`, in that order, moving as little as possible: a node that stays is never
 * taken out, so playing media, focus and open details survive.
 * @param {Element} parent
 * @param {Node[]} nodes
 */
export function arrange(parent, nodes) {
  const keep = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!keep.has(child)) child.remove();
  let next = parent.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
}

/** A list of keyed nodes: `make` once per key, `update` every time. */
export class Keyed {
  /** @param {Element} parent */
  constructor(parent) {
    this.parent = parent;
    /** @type {Map<any, any>} */
    this.parts = new Map();
  }

  /**
   * @param {Iterable<any>} items
   * @param {(item: any) => any} key
   * @param {(item: any) => {node: Element, update?: (item: any) => void}} make
   */
  show(items, key, make) {
    const seen = new Map();
    for (const item of items) {
      const id = key(item);
      const part = this.parts.get(id) ?? make(item);
      part.update?.(item);
      seen.set(id, part);
    }
    this.parts = seen;
    arrange(this.parent, [...seen.values()].map((part) => part.node));
  }
}

/** Made when it is first needed: it takes longer than all the rest of the page's start. @type {Intl.DateTimeFormat} */
let clock;

export function clockTime(epoch) {
  clock ??= new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return clock.format(epoch * 1000);
}

export function duration(seconds) {
  if (!(seconds > 0)) return t("unit.ms", { value: 0 });
  if (seconds < 1) return t("unit.ms", { value: Math.round(seconds * 1000) });
  if (seconds < 60) return t("unit.seconds", { value: numeral(seconds, 1) });
  return t("unit.minutes", { minutes: Math.floor(seconds / 60), seconds: Math.round(seconds % 60) });
}

export function fileSize(bytes) {
  if (bytes < 1000) return t("unit.bytes", { value: bytes });
  const size = (value) => ({ value: value < 10 ? numeral(value, 1) : Math.round(value) });
  return bytes < 1e6 ? t("unit.kilobytes", size(bytes / 1e3)) : t("unit.megabytes", size(bytes / 1e6));
}

/** Dollars. */
export function money(value) {
  return new Intl.NumberFormat(language(), { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", maximumFractionDigits: 20 }).format(value);
}

export function ago(epoch) {
  const seconds = Date.now() / 1000 - epoch;
  const words = new Intl.RelativeTimeFormat(language(), { numeric: "auto" });
  if (seconds < 60) return t("unit.now");
  if (seconds < 3600) return words.format(-Math.round(seconds / 60), "minute");
  if (seconds < 86400) return words.format(-Math.round(seconds / 3600), "hour");
  return words.format(-Math.round(seconds / 86400), "day");
}
