/** Questions and short messages: native <dialog>s, one snackbar. */
import { ApiError } from "./api.js";
import { coded, h } from "./dom.js";
import { settleFocus } from "./focus.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

/** Letters in what a player says, wherever it is typed. */
export const LONGEST_PROMPT = 8000;
/** In a text of the narrator that a player changes. */
const LONGEST_TEXT = 100_000;
/** Of stories and of moments. */
export const LONGEST_TITLE = 200;
const SNACKBAR_MS = 8000;

/**
 * @param {string} title
 * @param {(Node|string)[]} content
 * @param {{label: string, value: string, kind?: string, focus?: boolean}[]} actions `focus` is on the one Enter takes
 * @returns {Promise<string>} the value of the action, "" when dismissed
 */
export function ask(title, content, actions) {
  const buttons = actions.map(({ label, value, kind, focus }) => h("button", { class: `button ${kind ?? "text"}`, value, text: label, autofocus: focus }));
  const form = h("form", { method: "dialog" }, h("h2", { text: title, id: "ask-title" }), ...content, h("div", { class: "dialog-actions" }, ...buttons));
  const dialog = h("dialog", { class: "dialog", "aria-labelledby": "ask-title" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

/** @returns {Promise<string|null>} */
export async function askText(title, label, value, action, rows = 3) {
  const field = h("textarea", { class: "field", rows, id: "ask-field", maxlength: rows > 1 ? LONGEST_PROMPT : LONGEST_TITLE });
  field.value = value;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    field.form.requestSubmit(field.form.querySelector('button[value="ok"]'));
  });
  queueMicrotask(() => { field.focus(); field.select(); });
  const answer = await ask(title, [h("label", { for: "ask-field", text: label }), field], [
    { label: t("page.close"), value: "" },
    { label: action, value: "ok", kind: "filled" },
  ]);
  return answer === "ok" ? field.value.trim() : null;
}

/** A longer text, in which Enter begins a new line. @returns {Promise<string|null>} */
export async function askProse(title, label, value, action) {
  const field = h("textarea", { class: "field prose-field", rows: 12, id: "ask-field", maxlength: LONGEST_TEXT, dir: "auto" });
  field.value = value;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form.requestSubmit(field.form.querySelector('button[value="ok"]'));
  });
  queueMicrotask(() => { field.focus(); field.setSelectionRange(0, 0); field.scrollTop = 0; });
  const answer = await ask(title, [h("label", { for: "ask-field", text: label }), field], [
    { label: t("page.close"), value: "" },
    { label: action, value: "ok", kind: "filled" },
  ]);
  return answer === "ok" ? field.value.trim() : null;
}

export async function confirm(title, text, action) {
  const answer = await ask(title, [h("p", { text })], [
    { label: t("dialog.keep"), value: "" },
    { label: action, value: "ok", kind: "danger" },
  ]);
  return answer === "ok";
}

let snackbarTimer = 0;

/**
 * @param {string} text
 * @param {{label: string, run: () => void}|null} [action] what can be done about it
 */
export function snackbar(text, action = null) {
  const bar = document.getElementById("snackbar");
  const act = action && h("button", { class: "button text", text: action.label, on: { click: () => { clearSnackbar(); action.run(); } } });
  bar.replaceChildren(
    h("span", {}, ...coded(text.charAt(0).toUpperCase() + text.slice(1))),
    act ?? "",
    h("button", { class: "icon-button inverse", "aria-label": t("dialog.close_message"), on: { click: clearSnackbar } }, icon("close")),
  );
  bar.classList.add("open");
  clearTimeout(snackbarTimer);
  snackbarTimer = setTimeout(closeUnlessUsed, SNACKBAR_MS);
}

/** What it says is over as soon as something else is done, or another view is looked at. */
export function clearSnackbar() {
  clearTimeout(snackbarTimer);
  const bar = document.getElementById("snackbar");
  bar.classList.remove("open");
  for (const button of bar.querySelectorAll("button")) button.disabled = true; // while it fades it is no place for the focus
  settleFocus();
}
addEventListener("hashchange", clearSnackbar);

function closeUnlessUsed() {
  if (document.getElementById("snackbar").matches(":hover, :focus-within")) snackbarTimer = setTimeout(closeUnlessUsed, SNACKBAR_MS);
  else clearSnackbar();
}

/** Run an action for a person: what goes wrong is told, with what to do about it. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof ApiError)) console.error(error); // a refusal is an answer, not a fault of the page
    snackbar([error.message, ...(error.suggestions ?? [])].join(" "));
    return undefined;
  }
}

/**
 * A menu that opens from a button. Arrow keys move, Escape closes and gives the focus back.
 * @param {HTMLElement} opener
 * @param {{label: string, icon: string, run?: () => void, disabled?: boolean}[]} entries one without `run` only says something
 */
export function openMenu(opener, entries) {
  const menu = h("div", { class: "menu", role: "menu", popover: "auto", dir: document.documentElement.dir || "ltr", "aria-label": opener.getAttribute("aria-label") });
  for (const entry of entries) {
    const off = entry.disabled || !entry.run;
    const choose = () => {
      if (off) return;
      menu.hidePopover();
      opener.focus(); // a dialog gives the focus back to what had it
      entry.run();
    };
    menu.append(h("div", { class: entry.run ? "menu-item" : "menu-item remark", role: "menuitem", tabindex: "-1", "aria-disabled": off && "true", on: { click: choose } },
      icon(entry.icon), h("span", { text: entry.label, dir: "auto" })));
  }
  menu.addEventListener("keydown", (event) => moveInMenu(menu, event));
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    menu.remove();
    opener.setAttribute("aria-expanded", "false");
    if (!document.querySelector("dialog[open]")) opener.focus();
  });
  (opener.closest("main, header") ?? document.body).append(menu);
  menu.showPopover();
  opener.setAttribute("aria-expanded", "true");
  place(menu, opener.getBoundingClientRect(), getComputedStyle(opener).direction);
  menu.firstElementChild.focus();
}

function place(menu, anchor, direction) {
  const box = menu.getBoundingClientRect();
  const below = anchor.bottom + box.height + 8 < innerHeight;
  const edge = direction === "rtl" ? anchor.left : anchor.right - box.width;
  menu.style.left = `${Math.max(8, Math.min(edge, innerWidth - box.width - 8))}px`;
  menu.style.top = `${below ? anchor.bottom + 4 : Math.max(8, anchor.top - box.height - 4)}px`;
}

function moveInMenu(menu, event) {
  const items = [...menu.children];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) items[(to + items.length) % items.length].focus();
  else if (event.key === "Enter" || event.key === " ") items[at]?.click();
  else if (event.key === "Tab") menu.hidePopover();
  else return;
  event.preventDefault();
}
