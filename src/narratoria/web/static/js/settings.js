/** Settings: how this browser shows stories, and how this story is told. */
import { api } from "./api.js";
import { attempt } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { prefs, setPrefs, SIZES } from "./prefs.js";

/**
 * @typedef {{
 *   narrator: string, narrators: string[],
 *   skills: {name: string, description?: string, enabled: boolean}[],
 *   permissions: {name: string, granted: boolean}[],
 * }} SessionSettings
 */

/** @param {import("./game.js").Game|null} game */
export function openSettings(game) {
  const close = h("button", { class: "icon-button", "aria-label": "Close settings" }, icon("close"));
  const story = h("div", { class: "settings-story" });
  const dialog = h("dialog", { class: "dialog settings", "aria-labelledby": "settings-title" },
    h("header", {}, h("h2", { id: "settings-title", text: "Settings" }), close), reading(), story);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  if (game) showSessionSettings(game, story);
}

function reading() {
  const now = prefs();
  const size = h("input", { type: "range", min: SIZES.min, max: SIZES.max, value: now.size, id: "pref-size" });
  size.addEventListener("input", () => setPrefs({ size: Number(size.value) }));
  return h("section", {}, h("h3", { text: "Reading" }),
    choice("Theme", "theme", now.theme, [["dark", "Dark"], ["light", "Light"], ["system", "As the system"]]),
    choice("Typeface", "font", now.font, [["serif", "Serif"], ["sans", "Sans serif"]]),
    choice("Width", "width", now.width, [["narrow", "Narrow"], ["medium", "Medium"], ["wide", "Wide"]]),
    choice("Motion", "motion", now.motion, [["system", "As the system"], ["full", "Full"], ["reduce", "Reduced"]]),
    h("div", { class: "setting" }, h("label", { for: "pref-size", text: "Text size" }), size));
}

function choice(label, name, value, options) {
  const group = h("div", { class: "segments", role: "radiogroup", "aria-label": label });
  for (const [key, text] of options) {
    const input = h("input", { type: "radio", name: `pref-${name}`, value: key, id: `pref-${name}-${key}`, checked: key === value });
    input.addEventListener("change", () => setPrefs({ [name]: key }));
    group.append(input, h("label", { for: `pref-${name}-${key}`, text }));
  }
  return h("div", { class: "setting" }, h("span", { "aria-hidden": "true", text: label }), group);
}

async function showSessionSettings(game, place) {
  place.replaceChildren(h("p", { class: "quiet", text: "Reading the settings of this story…" }));
  /** @type {SessionSettings|undefined} */
  const settings = await attempt(() => api.settings(game.id));
  if (!settings) {
    place.replaceChildren(h("p", { class: "quiet", text: "The settings of this story could not be read." }));
    return;
  }
  const save = (change) => attempt(() => api.saveSettings(game.id, change));
  place.replaceChildren(narrator(settings, save), skills(settings, game, save), permissions(settings, save));
}

function narrator({ narrator: current, narrators }, save) {
  const select = h("select", { id: "set-narrator" }, ...narrators.map((name) => h("option", { value: name, text: name, selected: name === current })));
  select.addEventListener("change", () => save({ narrator: select.value }));
  return h("section", {}, h("h3", { text: "This story" }), h("div", { class: "setting" }, h("label", { for: "set-narrator", text: "Narrator" }), select));
}

function skills(settings, game, save) {
  const rows = settings.skills.map((skill) => {
    const health = game.world.skills.get(skill.name) ?? skill;
    const trouble = health.health !== "healthy" ? `Not well: ${health.reason || health.health}` : "";
    return toggle(`skill-${skill.name}`, skill.name, [skill.description, trouble].filter(Boolean).join(" · "), skill.enabled, (enabled) => save({ skills: { [skill.name]: enabled } }));
  });
  return h("section", {}, h("h3", { text: "Skills" }), ...(rows.length ? rows : [h("p", { class: "quiet", text: "This story brings no skills." })]));
}

function permissions(settings, save) {
  const rows = settings.permissions.map(({ name, granted }) => toggle(`permission-${name}`, name, "", granted, (value) => save({ permissions: { [name]: value } })));
  return h("section", {}, h("h3", { text: "Permissions of this session" }), ...(rows.length ? rows : [h("p", { class: "quiet", text: "Nothing in this story asks for a permission." })]));
}

function toggle(id, label, note, value, change) {
  const input = h("input", { type: "checkbox", role: "switch", class: "switch", id, checked: value, "aria-describedby": note ? `${id}-note` : null });
  input.addEventListener("change", () => change(input.checked));
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: id, text: label }), note ? h("p", { class: "quiet", id: `${id}-note`, text: note }) : ""), input);
}
