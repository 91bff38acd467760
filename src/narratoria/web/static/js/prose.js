/**
 * Narration: a small part of Markdown as elements. Paragraphs, headings, quotes, lists, rules, emphasis, strong,
 * code and line breaks; no links, no images, no HTML, because a story is text and tool text is data.
 */
import { h } from "./dom.js";

const INLINE = /(\*\*|__)(?=\S)(.+?)(?<=\S)\1|(\*|_)(?=\S)(.+?)(?<=\S)\3(?![\p{L}\p{N}])|`([^`\n]+)`|(\n)/su;
const HEADING = /^(#{1,3})\s+(.+)$/;
const RULE = /^\s*(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const BULLET = /^\s*[-*+]\s+/;
const NUMBER = /^\s*\d{1,3}[.)]\s+/;

/**
 * Show `text` in `parent`, keeping every block whose source is unchanged: while a narration streams only its last
 * block is written again.
 * @param {HTMLElement} parent
 * @param {string} text
 */
export function showProse(parent, text) {
  const sources = text.replaceAll("\r\n", "\n").split(/\n{2,}/).map((part) => part.replace(/^\n+|\n+$/g, "")).filter(Boolean);
  sources.forEach((source, index) => {
    const old = parent.children[index];
    if (old?.proseSource === source) return;
    const node = block(source);
    node.proseSource = source;
    if (!old) parent.append(node);
    else if (old.tagName === node.tagName) {
      old.replaceChildren(...node.childNodes);
      old.proseSource = source;
    } else old.replaceWith(node);
  });
  while (parent.children.length > sources.length) parent.lastElementChild.remove();
}

function block(source) {
  const heading = HEADING.exec(source);
  if (heading) return h("h3", { dir: "auto" }, ...inline(heading[2]));
  if (RULE.test(source)) return h("hr");
  const lines = source.split("\n");
  if (lines.every((line) => line.startsWith(">"))) {
    return h("blockquote", { dir: "auto" }, ...inline(lines.map((line) => line.replace(/^>\s?/, "")).join("\n")));
  }
  for (const [tag, mark] of [["ul", BULLET], ["ol", NUMBER]]) {
    if (lines.every((line) => mark.test(line))) {
      return h(tag, {}, ...lines.map((line) => h("li", { dir: "auto" }, ...inline(line.replace(mark, "")))));
    }
  }
  return h("p", { dir: "auto" }, ...inline(source));
}

/** @returns {(Node|string)[]} */
function inline(text, depth = 0) {
  const parts = [];
  let rest = text;
  for (let match = depth < 6 ? INLINE.exec(rest) : null; match; match = INLINE.exec(rest)) {
    const [whole, , strong, , emphasis, code] = match;
    // snake_case is a name, not emphasis
    const inWord = whole[0] === "_" && /[\p{L}\p{N}]$/u.test(rest.slice(0, match.index));
    if (inWord) {
      parts.push(rest.slice(0, match.index + 1));
      rest = rest.slice(match.index + 1);
      continue;
    }
    parts.push(rest.slice(0, match.index));
    if (strong !== undefined) parts.push(h("strong", {}, ...inline(strong, depth + 1)));
    else if (emphasis !== undefined) parts.push(h("em", {}, ...inline(emphasis, depth + 1)));
    else if (code !== undefined) parts.push(h("code", { text: code }));
    else parts.push(h("br"));
    rest = rest.slice(match.index + whole.length);
  }
  parts.push(rest);
  return parts.filter((part) => part !== "");
}
