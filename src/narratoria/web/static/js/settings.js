/** Settings: how this browser shows stories, and how this story is told. */
import { api } from "./api.js";
import { coded, h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { modelSection } from "./modelsettings.js";
import { applyLoudness } from "./player.js";
import { prefs, setPrefs, SIZES } from "./prefs.js";
import { canRead, stopReading } from "./aloud.js";
import { languages, t } from "./words.js";

/**
 * @typedef {{
 *   narrator: string, narrators: string[], missing: Object<string, string>,
 *   skills: {name: string, description?: string, enabled: boolean, settings?: SkillField[]}[],
 *   permissions: {name: string, granted: boolean}[],
 * }} SessionSettings
 */

/** @typedef {{key: string, title: string, description?: string, kind?: string, value?: any, source?: string, options?: any[]}} SkillField */

const NARRATORS = {
  story: ["As the story asks", "Its own narrators, in the order its author chose."],
  rules: ["The story’s rules", "What the author wrote, for the words the author thought of."],
  paraphrase: ["The story’s closest rule", "The author’s rules, found also when you say it in other words."],
  local: ["This computer", "Plans with the tools there are, without a model, for any words in English."],
  llm: ["Language model", "A model of your own or a provider’s tells the story as it goes."],
  template: ["Plain", "Says in short sentences what happened. It is always there when the others pass."],
};
/** A setting that is not saved by then waits for something, and that is said. */
const SOON = 300;
const FEW = 3;

/** @param {import("./game.js").Game|null} game */
export function openSettings(game) {
  const close = h("button", { class: "icon-button", "aria-label": "Close settings" }, icon("close"));
  const note = new Note();
  const story = h("div", { class: "settings-story" });
  const dialog = h("dialog", { class: "dialog settings", "aria-labelledby": "settings-title" },
    h("header", {}, h("h2", { id: "settings-title", text: "Settings" }), close, note.node), reading(), sound(), modelSection(() => modelChanged(game, story, note)), story, thisBrowser(note));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  if (game) showSessionSettings(game, story, note);
}

function modelChanged(game, story, note) {
  note.say(game ? "Saved. Who tells this story is chosen below." : "Saved.");
  if (game) showSessionSettings(game, story, note);
}

/** What became of the last change; under a modal dialog nothing else could be seen. */
class Note {
  constructor() {
    this.node = h("p", { class: "settings-note", role: "status" });
  }

  say(text, kind = "") {
    this.node.className = `settings-note ${kind}`;
    this.node.setAttribute("role", kind === "error" ? "alert" : "status");
    this.node.replaceChildren(...coded(text));
  }

  fail(error) {
    this.say([error.message, ...(error.suggestions ?? [])].join(" "), "error");
  }
}

function reading() {
  const now = prefs();
  const size = h("input", { type: "range", min: SIZES.min, max: SIZES.max, value: now.size, id: "pref-size", "aria-valuetext": `${now.size} px` });
  const number = h("span", { "aria-hidden": "true", class: "quiet", text: `${now.size} px` });
  size.addEventListener("input", () => {
    setPrefs({ size: Number(size.value) });
    setText(number, `${size.value} px`);
    size.setAttribute("aria-valuetext", `${size.value} px`);
  });
  return h("section", {}, h("h3", { text: "Reading" }), languageField(),
    choice("Theme", "theme", now.theme, [["dark", "Dark"], ["light", "Light"], ["system", "As the system"]]),
    choice("Typeface", "font", now.font, [["serif", "Serif"], ["sans", "Sans serif"], ["system", "The system’s"]]),
    h("p", { class: "quiet", text: "Source Serif Pro (SIL Open Font License 1.1) and Roboto (Apache License 2.0)." }),
    choice("Width", "width", now.width, [["narrow", "Narrow"], ["medium", "Medium"], ["wide", "Wide"]]),
    choice("Line height", "line", now.line, [["tight", "Tight"], ["normal", "Normal"], ["loose", "Loose"]]),
    choice("Contrast", "contrast", now.contrast, [["system", "As the system"], ["normal", "Normal"], ["more", "High"]]),
    choice("Pace of new text", "pace", now.pace, [["instant", "At once"], ["normal", "Gentle"], ["slow", "Slow"]]),
    choice("Motion", "motion", now.motion, [["system", "As the system"], ["full", "Full"], ["reduce", "Reduced"]]),
    h("div", { class: "setting" }, h("label", { for: "pref-size", text: "Text size" }), h("div", { class: "sized" }, size, number)),
    h("p", { class: "sample", "aria-hidden": "true", text: "The lamp is lit, and somebody at sea sees it." }));
}

/** The server writes the page in the language that is set here, so the page comes anew. */
function languageField() {
  const set = /(?:^|;\s*)narratoria-language=([\w-]+)/.exec(document.cookie)?.[1] ?? "";
  const field = h("select", { class: "field", id: "pref-language", "aria-describedby": "pref-language-note" },
    h("option", { value: "", text: t("settings.language_browser"), selected: !set }),
    ...Object.entries(languages()).map(([tag, name]) => h("option", { value: tag, text: name, lang: tag, selected: tag === set })));
  field.addEventListener("change", () => {
    document.cookie = `narratoria-language=${field.value}; Path=/; SameSite=Lax; Max-Age=${field.value ? 31536000 : 0}`;
    location.reload();
  });
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: "pref-language", text: t("settings.language") }), h("p", { class: "quiet", id: "pref-language-note", text: t("settings.language_note") })), field);
}

/** What is heard: of the story's own sounds, and of the browser's voices. */
function sound() {
  const now = prefs();
  const volume = h("input", { type: "range", min: 0, max: 100, value: now.volume, id: "pref-volume", "aria-valuetext": `${now.volume} %` });
  const number = h("span", { "aria-hidden": "true", class: "quiet", text: `${now.volume} %` });
  volume.addEventListener("input", () => {
    setPrefs({ volume: Number(volume.value) });
    applyLoudness();
    setText(number, `${volume.value} %`);
    volume.setAttribute("aria-valuetext", `${volume.value} %`);
  });
  return h("section", {}, h("h3", { text: "Sound" }),
    h("div", { class: "setting" }, h("label", { for: "pref-volume", text: "Volume" }), h("div", { class: "sized" }, volume, number)),
    own("muted", "Mute", "", now.muted, applyLoudness),
    own("ambience", "Ambience", "Sounds that a story gives a place go on by themselves, and fade into each other.", now.ambience, applyLoudness),
    canRead() ? own("aloud", "Read aloud", "Each new turn, by a voice of this browser. The menu of a turn reads that one.", now.aloud, () => prefs().aloud || stopReading()) : "");
}

/** A switch of this browser's own. */
function own(name, label, note, value, changed) {
  const id = `pref-${name}`;
  const input = h("input", { type: "checkbox", role: "switch", class: "switch", id, checked: value, "aria-describedby": note ? `${id}-note` : null });
  input.addEventListener("change", () => { setPrefs({ [name]: input.checked }); changed(); });
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: id, text: label }), note ? h("p", { class: "quiet", id: `${id}-note`, text: note }) : ""), input);
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

/** Who is signed in: this browser, until it says otherwise. */
function thisBrowser(note) {
  const out = h("button", { class: "button tonal", text: "Sign out" });
  out.addEventListener("click", async () => {
    out.disabled = true;
    try {
      await api.signOut();
      location.assign("/"); // which says how to come back
    } catch (error) {
      out.disabled = false;
      note.fail(error);
    }
  });
  return h("section", {}, h("h3", { text: "This browser" }),
    h("div", { class: "setting" }, h("span", { text: "Signed in" }), out),
    h("p", { class: "quiet", text: "Signing out ends it for every window of this browser. To come back, open the address that narratoria play printed last." }));
}

async function showSessionSettings(game, place, note) {
  place.replaceChildren(h("p", { class: "quiet", text: "Reading the settings of this story…" }));
  /** @type {SessionSettings} */
  let settings;
  try {
    settings = await api.settings(game.id);
  } catch (error) {
    note.fail(error);
    const again = h("button", { class: "button tonal", text: "Try again", on: { click: () => { note.say(""); showSessionSettings(game, place, note); } } });
    place.replaceChildren(h("p", { class: "quiet", text: "The settings of this story could not be read." }), again);
    return;
  }
  const save = (change, control, revert) => saveChange(game, note, change, control, revert);
  place.replaceChildren(narrator(settings, save), permissions(settings, save), skills(settings, game, save));
}

/** The control shows what is wanted while the server is asked, and what is so when it has refused. */
async function saveChange(game, note, change, control, revert) {
  const slow = setTimeout(() => note.say(game.busy ? "This is saved when this turn is over…" : "Saving…"), SOON);
  control.setAttribute("aria-busy", "true");
  try {
    await api.saveSettings(game.id, change);
    note.say("Saved.");
  } catch (error) {
    revert();
    note.fail(error);
  } finally {
    clearTimeout(slow);
    control.removeAttribute("aria-busy");
  }
}

function narrator({ narrator: current, narrators, missing = {} }, save) {
  let chosen = current;
  const group = h("div", { class: "options", role: "radiogroup", "aria-label": "Narrator" });
  for (const name of narrators) {
    const [label, text] = NARRATORS[name] ?? [name, ""];
    const id = `narrator-${name}`;
    const input = h("input", { type: "radio", name: "narrator", value: name, id, checked: name === current, disabled: name in missing && name !== current, "aria-describedby": `${id}-note` });
    input.addEventListener("change", () => {
      const before = chosen;
      chosen = name;
      save({ narrator: name }, input, () => { chosen = before; group.querySelector(`[value="${before}"]`).checked = true; });
    });
    group.append(h("div", { class: "option" }, input, h("div", {}, h("label", { for: id, text: label }),
      h("p", { class: "quiet", id: `${id}-note`, text: name in missing ? `${text} Not here: ${missing[name]}.` : text }))));
  }
  return h("section", {}, h("h3", { text: "Who tells this story" }), group);
}

function skills(settings, game, save) {
  const rows = settings.skills.map((skill) => {
    const health = game.world.skills.get(skill.name) ?? skill;
    const trouble = health.health !== "healthy" ? `Not well: ${health.reason || health.health}` : "";
    const row = toggle(`skill-${skill.name}`, skill.name, [skill.description, trouble].filter(Boolean).join(" · "), skill.enabled, (enabled) => ({ skills: { [skill.name]: enabled } }), save);
    return skill.settings?.length ? h("div", {}, row, skillForm(skill, save)) : row;
  });
  if (!rows.length) return h("section", {}, h("h3", { text: "Skills" }), h("p", { class: "quiet", text: "This story brings no skills." }));
  const off = settings.skills.filter((skill) => !skill.enabled).length;
  const summary = h("summary", {}, h("h3", { text: "Advanced: skills" }), h("span", { class: "quiet", text: off ? `${off} of ${rows.length} off` : `${rows.length} on` }));
  return h("section", {}, h("details", { open: rows.length <= FEW || off > 0 }, summary,
    h("p", { class: "quiet", text: "What the narrator may do. A story is made for all of its skills: with one switched off it may not be possible to reach an ending." }), ...rows));
}

/** What a person may set of a skill, in every story. */
function skillForm(skill, save) {
  const fields = skill.settings.map((field) => skillField(skill.name, field, (value, control, revert) => save({ skillSettings: { [skill.name]: { [field.key]: value } } }, control, revert)));
  return h("details", { class: "skill-form" }, h("summary", {}, h("span", { text: `Settings of ${skill.name}` })), ...fields);
}

const asText = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));

/** @param {string} skill @param {SkillField} field */
function skillField(skill, { key, title, description = "", kind = "text", value, source, options = [] }, save) {
  const id = `skill-${skill}-${key}`;
  const kept = kind === "secret" ? "Never written down: say where it is kept, env:VARIABLE or keyring:ENTRY." : "";
  const written = kind === "json" ? "Written as JSON." : "";
  const note = [description, kept, written, source === "the story" ? "Set by the story." : ""].filter(Boolean).join(" ");
  const about = { id, "aria-describedby": note ? `${id}-note` : null };
  let input;
  let now = value;
  if (kind === "switch") input = h("input", { ...about, type: "checkbox", role: "switch", class: "switch", checked: value === true });
  else if (kind === "choice") input = h("select", { ...about, class: "field" }, ...["", ...options.map(asText)].map((text) => h("option", { value: text, text: text || "as it comes", selected: text === asText(value) })));
  else if (kind === "json") input = h("textarea", { ...about, class: "field", rows: "3", autocomplete: "off", spellcheck: "false", placeholder: "[] or {}" }, asText(value));
  else input = h("input", { ...about, class: "field", type: kind === "number" ? "number" : "text", step: kind === "number" ? "any" : null, value: asText(value), autocomplete: "off", spellcheck: "false", placeholder: kind === "secret" ? "env:VARIABLE" : null });
  const show = () => { if (kind === "switch") input.checked = now === true; else input.value = asText(now); };
  input.addEventListener("change", () => {
    const before = now;
    try {
      now = kind === "switch" ? input.checked : entered(kind, input.value, options);
    } catch {
      now = input.value; // the server says what is wrong with it
    }
    save(now, input, () => { now = before; show(); });
  });
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: id, text: title }), note ? h("p", { class: "quiet", id: `${id}-note`, text: note }) : ""), input);
}

/** The value of a field; nothing takes it back. */
function entered(kind, text, options) {
  if (!text.trim()) return null;
  if (kind === "choice") return options.find((one) => asText(one) === text);
  if (kind === "number") return Number(text);
  return kind === "json" ? JSON.parse(text) : text;
}

function permissions(settings, save) {
  const rows = settings.permissions.map(({ name, granted }) => toggle(`permission-${name}`, name, "", granted, (value) => ({ permissions: { [name]: value } }), save));
  return h("section", {}, h("h3", { text: "Permissions of this session" }), ...(rows.length ? rows : [h("p", { class: "quiet", text: "Nothing in this story asks for a permission." })]));
}

function toggle(id, label, note, value, change, save) {
  const input = h("input", { type: "checkbox", role: "switch", class: "switch", id, checked: value, "aria-describedby": note ? `${id}-note` : null });
  input.addEventListener("change", () => {
    const wanted = input.checked;
    save(change(wanted), input, () => { input.checked = !wanted; });
  });
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: id, text: label }), note ? h("p", { class: "quiet", id: `${id}-note`, text: note }) : ""), input);
}
