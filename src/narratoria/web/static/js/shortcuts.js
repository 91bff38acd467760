/** Keys that work anywhere on the page of a story: `?` lists them all, `/` searches, Ctrl+Z takes the newest turn back. */
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { redo, undo } from "./moves.js";

const KEYS = [
  ["Enter", "Send what you wrote. While a turn runs it waits, and is sent when that has ended."],
  ["Shift + Enter", "Begin a new line."],
  ["Arrow up", "Bring back what you said before."],
  ["1 – 9", "Take a choice by its number."],
  ["Escape", "Stop a turn that runs."],
  ["Ctrl + Z", "Take the newest turn back."],
  ["Ctrl + Shift + Z", "Bring it back again."],
  ["/", "Search the story; Ctrl + Shift + F while you write."],
  ["?", "Show this list."],
];
const FIELDS = "textarea, input, select, [contenteditable]";

/** @param {import("./game.js").Game} game @param {HTMLTextAreaElement} field where the player writes @param {() => void} search */
export function listenForShortcuts(game, field, search) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || document.querySelector("dialog[open]")) return;
    const inField = event.target.closest?.(FIELDS);
    if (event.key === "?" && !inField && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      showShortcuts();
    } else if ((event.key === "/" && !inField && !event.ctrlKey && !event.metaKey) || ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "f")) {
      event.preventDefault();
      search();
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && (!inField || (inField === field && !field.value))) {
      event.preventDefault();
      if (!game.busy && !game.moving) (event.shiftKey ? game.world.redo.length && redo(game) : game.canUndo && undo(game));
    }
  }, true);
}

function showShortcuts() {
  const rows = KEYS.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", { text: key })), h("dd", { text })));
  ask("Keyboard shortcuts", [h("dl", { class: "shortcuts" }, ...rows)], [{ label: "Close", value: "", focus: true }]);
}
