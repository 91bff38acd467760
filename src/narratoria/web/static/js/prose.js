/**
 * Narration: put in place what the server made of it. It comes as blocks of HTML that a parser and a sanitiser on
 * the server have written (`prose.py`); this is the only place in the page where markup is read, and the policy
 * of the page (`trusted-types`) lets no other.
 */
import { h } from "./dom.js";

const trust = window.trustedTypes?.createPolicy("narration", { createHTML: (html) => html }) ?? { createHTML: (html) => html };

/**
 * Show a narration in `parent`, keeping every block that is unchanged: while it streams, only its end is written
 * again. Without blocks, because the text is too long or they have been missed, it is shown as it was written, in
 * one piece: forty thousand paragraphs would take the browser seconds.
 * @param {HTMLElement} parent
 * @param {{text: string, blocks?: string[], plain?: boolean}} item
 */
export function showProse(parent, { text, blocks = [], plain = true }) {
  const sources = plain ? [text.trim()] : blocks;
  parent.classList.toggle("plain", plain);
  const old = [...parent.children];
  sources.forEach((source, index) => {
    const shown = old[index];
    if (shown?.proseSource === source) return;
    const node = plain ? h("p", { dir: "auto", text: source }) : element(source);
    node.proseSource = source;
    if (!shown) parent.append(node);
    else if (shown.tagName === node.tagName) {
      shown.replaceChildren(...node.childNodes);
      shown.proseSource = source;
    } else shown.replaceWith(node);
  });
  for (const gone of old.slice(sources.length)) gone.remove();
}

/** A block is one element. Inside a template it is inert: nothing loads or runs before it is in the page. */
function element(source) {
  const template = document.createElement("template");
  template.innerHTML = trust.createHTML(source);
  return template.content.firstElementChild;
}
