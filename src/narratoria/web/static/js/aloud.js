/** Reading aloud by the voices of the browser; what is being read is marked, and stays in sight. */
import { calm } from "./prefs.js";

const WORD = "spoken-word";

/** What is read now: its blocks, in order. @type {HTMLElement[]} */
let blocks = [];
/** @type {HTMLElement|null} */
let current = null;

export function canRead() {
  return "speechSynthesis" in window && typeof SpeechSynthesisUtterance === "function";
}

export function isReading() {
  return current !== null || blocks.length > 0;
}

/** @param {Iterable<HTMLElement>} nodes narrations, of which every block is read */
export function readAloud(nodes) {
  stopReading();
  if (!canRead()) return;
  blocks = [...nodes].flatMap((node) => (node.childElementCount ? [...node.children] : [node])).filter((block) => block.textContent.trim());
  next();
}

export function stopReading() {
  blocks = [];
  mark(null);
  if (canRead()) speechSynthesis.cancel();
  dispatchEvent(new Event("reading"));
}

function next() {
  const block = blocks.shift();
  if (!block?.isConnected) {
    stopReading();
    return;
  }
  const utterance = new SpeechSynthesisUtterance(block.textContent);
  const { lang } = block.closest("[lang]") ?? document.documentElement;
  utterance.lang = lang;
  const language = lang.split("-")[0];
  utterance.voice = speechSynthesis.getVoices().find((voice) => voice.localService && voice.lang.startsWith(language)) ?? null;
  mark(block);
  dispatchEvent(new Event("reading"));
  utterance.addEventListener("boundary", (event) => current === block && event.name !== "sentence" && markWord(block, event.charIndex, event.charLength));
  // what is stopped ends too, and is not the current one any more
  for (const type of ["end", "error"]) utterance.addEventListener(type, () => current === block && next());
  speechSynthesis.speak(utterance);
}

function mark(block) {
  current?.classList.remove("spoken");
  globalThis.CSS?.highlights?.delete(WORD);
  current = block;
  if (!block) return;
  block.classList.add("spoken");
  block.scrollIntoView({ block: "nearest", behavior: calm() ? "instant" : "smooth" });
}

/** The word itself, where a browser can mark a range. */
function markWord(block, start, length = 0) {
  if (!globalThis.CSS?.highlights) return;
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (start < before + node.length) {
      const range = new Range();
      const from = start - before;
      range.setStart(node, from);
      range.setEnd(node, Math.min(node.length, from + (length || /^\S*/.exec(node.data.slice(from))[0].length)));
      CSS.highlights.set(WORD, new Highlight(range));
      return;
    }
    before += node.length;
  }
}
