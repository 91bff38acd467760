/** Keys that work anywhere on the page of a story: `?` lists them all, `/` searches, Ctrl+Z takes the newest turn back. */
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { redo, undo } from "./moves.js";
import { t } from "./words.js";

const KEYS = [
  [t("shortcuts.key_enter"), t("shortcuts.does_enter")],
  [t("shortcuts.key_shift_enter"), t("shortcuts.does_shift_enter")],
  [t("shortcuts.key_up"), t("shortcuts.does_up")],
  ["1 – 9", t("shortcuts.does_choose")],
  [t("shortcuts.key_escape"), t("shortcuts.does_escape")],
  [t("shortcuts.key_undo"), t("shortcuts.does_undo")],
  [t("shortcuts.key_redo"), t("shortcuts.does_redo")],
  [t("shortcuts.key_variants"), t("shortcuts.does_variants")],
  ["/", t("shortcuts.does_search")],
  ["?", t("shortcuts.does_list")],
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
  ask(t("shortcuts.title"), [h("dl", { class: "shortcuts" }, ...rows)], [{ label: t("page.close"), value: "", focus: true }]);
}
