/** Questions and short messages: native <dialog>s, one snackbar. */
import { h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @param {string} title
 * @param {(Node|string)[]} content
 * @param {{label: string, value: string, kind?: string}[]} actions the last one is the default
 * @returns {Promise<string>} the value of the action, "" when dismissed
 */
export function ask(title, content, actions) {
  const buttons = actions.map(({ label, value, kind }) => h("button", { class: `button ${kind ?? "text"}`, value, text: label }));
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
export async function askText(title, label, value, action) {
  const field = h("textarea", { class: "field", rows: 3, id: "ask-field", maxlength: 4000 });
  field.value = value;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    field.form.requestSubmit(field.form.querySelector('button[value="ok"]'));
  });
  queueMicrotask(() => { field.focus(); field.select(); });
  const answer = await ask(title, [h("label", { for: "ask-field", text: label }), field], [
    { label: "Close", value: "" },
    { label: action, value: "ok", kind: "filled" },
  ]);
  return answer === "ok" ? field.value.trim() : null;
}

export async function confirm(title, text, action) {
  const answer = await ask(title, [h("p", { text })], [
    { label: "Keep", value: "" },
    { label: action, value: "ok", kind: "danger" },
  ]);
  return answer === "ok";
}

let snackbarTimer = 0;

/** @param {string} text */
export function snackbar(text) {
  const bar = document.getElementById("snackbar");
  const close = () => bar.classList.remove("open");
  bar.replaceChildren(
    h("span", { text }),
    h("button", { class: "icon-button inverse", "aria-label": "Close message", on: { click: close } }, icon("close")),
  );
  bar.classList.add("open");
  clearTimeout(snackbarTimer);
  snackbarTimer = setTimeout(close, 8000);
}

/** Run an action for a person: what goes wrong is told, with what to do about it. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    console.error(error);
    snackbar([error.message, ...(error.suggestions ?? [])].join(" "));
    return undefined;
  }
}

/**
 * A menu that opens from a button. Arrow keys move, Escape closes and gives the focus back.
 * @param {HTMLElement} opener
 * @param {{label: string, icon: string, run: () => void}[]} entries
 */
export function openMenu(opener, entries) {
  const menu = h("div", { class: "menu", role: "menu", popover: "auto", "aria-label": opener.getAttribute("aria-label") });
  for (const entry of entries) {
    const choose = () => { menu.hidePopover(); entry.run(); };
    menu.append(h("div", { class: "menu-item", role: "menuitem", tabindex: "-1", on: { click: choose } }, icon(entry.icon), h("span", { text: entry.label })));
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
  place(menu, opener.getBoundingClientRect());
  menu.firstElementChild.focus();
}

function place(menu, anchor) {
  const box = menu.getBoundingClientRect();
  const below = anchor.bottom + box.height + 8 < innerHeight;
  menu.style.left = `${Math.max(8, Math.min(anchor.right - box.width, innerWidth - box.width - 8))}px`;
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
