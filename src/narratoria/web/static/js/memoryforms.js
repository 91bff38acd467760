/** Forms of the memory view: a piece of lore, and what became of a file. */
import { ApiError } from "./api.js";
import { ask } from "./dialogs.js";
import { h, setText } from "./dom.js";
import { memoryName } from "./recall.js";
import { t } from "./words.js";

const LONGEST_TEXT = 20000;
const LONGEST_NAME = 200;
const LONGEST_KEYWORDS = 5000;

/** Names of both are shown: which words a field has, and what it is for. */
function field(label, input, note = "") {
  const help = note ? h("p", { class: "quiet", id: `${input.id}-note`, text: note }) : "";
  if (note) input.setAttribute("aria-describedby", `${input.id}-note`);
  return h("div", { class: "memory-field" }, h("label", { for: input.id, text: label }), input, help);
}

/**
 * Ask for a piece of lore, or another wording of something remembered. What is refused is said in the form, which stays.
 * @param {any} item null for a new one @param {(asked: any) => Promise<{edit: number}>} send
 * @returns {Promise<{edit: number}|null>}
 */
export function editMemory(item, send) {
  const own = !item || item.own;
  const name = h("input", { class: "field", id: "lore-name", maxlength: LONGEST_NAME, dir: "auto", autocomplete: "off", value: item?.name ?? "" });
  const text = h("textarea", { class: "field", id: "lore-text", rows: 6, maxlength: LONGEST_TEXT, dir: "auto", required: true });
  text.value = item?.text ?? "";
  const keywords = h("textarea", { class: "field", id: "lore-keywords", rows: 2, maxlength: LONGEST_KEYWORDS, dir: "auto", autocomplete: "off", spellcheck: "false" });
  keywords.value = (item?.keywords ?? []).join("\n");
  const always = h("input", { type: "checkbox", class: "switch", id: "lore-always" });
  always.checked = item?.always ?? false;
  const problem = h("p", { class: "memory-problem", role: "alert" });
  const save = h("button", { class: "button filled", text: t("memory.keep") });
  const close = h("button", { class: "button text", type: "button", text: t("page.close") });
  const form = h("form", { novalidate: true }, h("h2", { id: "lore-title", text: item ? t("memory.edit", { name: memoryName(item) }) : t("memory.add") }),
    ...(own ? [field(t("memory.name"), name), field(t("memory.text"), text), field(t("memory.keywords"), keywords, t("memory.keywords_note")),
      h("div", { class: "setting" }, h("label", { for: "lore-always", text: t("memory.always") }), always)]
      : [field(t("memory.text"), text, item.kind === "turn" ? t("memory.turn_note") : "")]),
    problem, h("div", { class: "dialog-actions" }, close, save));
  const dialog = h("dialog", { class: "dialog memory-form", "aria-labelledby": "lore-title" }, form);
  let made = null;
  close.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    const asked = { id: item?.id, text: text.value };
    if (own) Object.assign(asked, { name: name.value, always: always.checked, keywords: keywords.value.split("\n").map((one) => one.trim()).filter(Boolean) });
    try {
      made = await send(asked);
      dialog.close();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setText(problem, error.message);
      save.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  (own && !item ? name : text).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(made);
    });
  });
}

/** What came of a file, and what did not. @returns {Promise<string>} "undo" to take it out again */
export function askImported({ name, entries, characters, dropped }) {
  const came = [characters ? t("memory.characters_came", { count: characters }) : "", entries ? t("memory.lore_came", { count: entries }) : ""].filter(Boolean).map((text) => h("p", { text }));
  const list = dropped.length ? h("details", { class: "memory-dropped", open: dropped.length <= 12 }, h("summary", { text: t("memory.dropped", { number: dropped.length }) }),
    h("ul", {}, ...dropped.map((text) => h("li", { dir: "auto", text })))) : "";
  return ask(t("memory.imported", { name }), [...came, list], [
    { label: t("memory.undo_import"), value: "undo" }, { label: t("memory.done"), value: "ok", kind: "filled", focus: true },
  ]);
}
