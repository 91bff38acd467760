/** Settings: how this browser shows stories, and how this story is told. */
import { api } from "./api.js";
import { coded, h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { modelSection } from "./modelsettings.js";
import { applyLoudness } from "./player.js";
import { prefs, setPrefs, SIZES } from "./prefs.js";
import { sharing } from "./sharing.js";
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
  story: [t("narrator.story"), t("narrator.story_note")],
  rules: [t("narrator.rules"), t("narrator.rules_note")],
  paraphrase: [t("narrator.paraphrase"), t("narrator.paraphrase_note")],
  local: [t("narrator.local"), t("narrator.local_note")],
  llm: [t("narrator.llm"), t("narrator.llm_note")],
  template: [t("narrator.template"), t("narrator.template_note")],
};
/** Of players, on a server where they have accounts. */
const ROLES = { guest: t("role.guest"), player: t("role.player"), author: t("role.author"), operator: t("role.operator") };
/** A setting that is not saved by then waits for something, and that is said. */
const SOON = 300;
const FEW = 3;

/** @param {import("./game.js").Game|null} game */
export function openSettings(game) {
  const close = h("button", { class: "icon-button", "aria-label": t("settings.close") }, icon("close"));
  const note = new Note();
  const story = h("div", { class: "settings-story" });
  const dialog = h("dialog", { class: "dialog settings", "aria-labelledby": "settings-title" },
    h("header", {}, h("h2", { id: "settings-title", text: t("settings.title") }), close, note.node), reading(), sound(), modelSection(() => modelChanged(game, story, note)), story, thisBrowser(note));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  if (game) showSessionSettings(game, story, note);
}

function modelChanged(game, story, note) {
  note.say(game ? t("settings.saved_below") : t("settings.saved"));
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
  const size = h("input", { type: "range", min: SIZES.min, max: SIZES.max, value: now.size, id: "pref-size", "aria-valuetext": t("unit.pixels", { value: now.size }) });
  const number = h("span", { "aria-hidden": "true", class: "quiet", text: t("unit.pixels", { value: now.size }) });
  size.addEventListener("input", () => {
    setPrefs({ size: Number(size.value) });
    setText(number, t("unit.pixels", { value: Number(size.value) }));
    size.setAttribute("aria-valuetext", t("unit.pixels", { value: Number(size.value) }));
  });
  return h("section", {}, h("h3", { text: t("settings.reading") }), languageField(),
    choice(t("settings.theme"), "theme", now.theme, [["dark", t("settings.dark")], ["light", t("settings.light")], ["system", t("settings.as_system")]]),
    choice(t("settings.typeface"), "font", now.font, [["serif", t("settings.serif")], ["sans", t("settings.sans")], ["system", t("settings.systems")]]),
    h("p", { class: "quiet", text: t("settings.fonts") }),
    choice(t("settings.width"), "width", now.width, [["narrow", t("settings.narrow")], ["medium", t("settings.medium")], ["wide", t("settings.wide")]]),
    choice(t("settings.line"), "line", now.line, [["tight", t("settings.tight")], ["normal", t("settings.normal")], ["loose", t("settings.loose")]]),
    choice(t("settings.contrast"), "contrast", now.contrast, [["system", t("settings.as_system")], ["normal", t("settings.normal")], ["more", t("settings.high")]]),
    choice(t("settings.pace"), "pace", now.pace, [["instant", t("settings.instant")], ["normal", t("settings.gentle")], ["slow", t("settings.slow")]]),
    choice(t("settings.motion"), "motion", now.motion, [["system", t("settings.as_system")], ["full", t("settings.full")], ["reduce", t("settings.reduced")]]),
    h("div", { class: "setting" }, h("label", { for: "pref-size", text: t("settings.size") }), h("div", { class: "sized" }, size, number)),
    h("p", { class: "sample", "aria-hidden": "true", text: t("settings.sample") }));
}

/** The server writes the page in the language that is set here, so the page comes anew. */
function languageField() {
  const set = /(?:^|;\s*)narratoria-language=([\w-]+)/.exec(document.cookie)?.[1] ?? "";
  const field = h("select", { id: "pref-language", "aria-describedby": "pref-language-note" },
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
  const volume = h("input", { type: "range", min: 0, max: 100, value: now.volume, id: "pref-volume", "aria-valuetext": t("unit.percent", { value: now.volume }) });
  const number = h("span", { "aria-hidden": "true", class: "quiet", text: t("unit.percent", { value: now.volume }) });
  volume.addEventListener("input", () => {
    setPrefs({ volume: Number(volume.value) });
    applyLoudness();
    setText(number, t("unit.percent", { value: Number(volume.value) }));
    volume.setAttribute("aria-valuetext", t("unit.percent", { value: Number(volume.value) }));
  });
  return h("section", {}, h("h3", { text: t("settings.sound") }),
    h("div", { class: "setting" }, h("label", { for: "pref-volume", text: t("settings.volume") }), h("div", { class: "sized" }, volume, number)),
    own("muted", t("settings.mute"), "", now.muted, applyLoudness),
    own("ambience", t("settings.ambience"), t("settings.ambience_note"), now.ambience, applyLoudness),
    canRead() ? own("aloud", t("turn.aloud"), t("settings.aloud_note"), now.aloud, () => prefs().aloud || stopReading()) : "");
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
  const out = h("button", { class: "button tonal", text: t("settings.sign_out") });
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
  const who = h("span", { text: t("settings.signed_in") });
  const how = h("p", { class: "quiet", text: t("settings.sign_out_note") });
  api.me().then(({ name, role }) => {
    if (!role) return;
    setText(who, t("settings.signed_in_as", { name, role: ROLES[role] ?? role }));
    setText(how, t("settings.sign_out_player"));
  }, () => {}); // then it says no name
  return h("section", {}, h("h3", { text: t("settings.browser") }), h("div", { class: "setting" }, who, out), how);
}

async function showSessionSettings(game, place, note) {
  place.replaceChildren(h("p", { class: "quiet", text: t("settings.reading_story") }));
  /** @type {SessionSettings} */
  let settings;
  try {
    settings = await api.settings(game.id);
  } catch (error) {
    note.fail(error);
    const again = h("button", { class: "button tonal", text: t("page.again"), on: { click: () => { note.say(""); showSessionSettings(game, place, note); } } });
    place.replaceChildren(h("p", { class: "quiet", text: t("settings.unread") }), again);
    return;
  }
  const save = (change, control, revert) => saveChange(game, note, change, control, revert);
  place.replaceChildren(narrator(settings, save), permissions(settings, save), skills(settings, game, save), sharing(game, note));
}

/** The control shows what is wanted while the server is asked, and what is so when it has refused. */
async function saveChange(game, note, change, control, revert) {
  const slow = setTimeout(() => note.say(game.busy ? t("settings.saved_later") : t("settings.saving")), SOON);
  control.setAttribute("aria-busy", "true");
  try {
    await api.saveSettings(game.id, change);
    note.say(t("settings.saved"));
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
  const group = h("div", { class: "options", role: "radiogroup", "aria-label": t("settings.narrator") });
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
      h("p", { class: "quiet", id: `${id}-note`, text: name in missing ? t("settings.not_here", { text, reason: missing[name] }) : text }))));
  }
  return h("section", {}, h("h3", { text: t("settings.who") }), group);
}

function skills(settings, game, save) {
  const rows = settings.skills.map((skill) => {
    const health = game.world.skills.get(skill.name) ?? skill;
    const trouble = health.health !== "healthy" ? t("settings.not_well", { reason: health.reason || health.health }) : "";
    const row = toggle(`skill-${skill.name}`, skill.name, [skill.description, trouble].filter(Boolean).join(" · "), skill.enabled, (enabled) => ({ skills: { [skill.name]: enabled } }), save);
    return skill.settings?.length ? h("div", {}, row, skillForm(skill, save)) : row;
  });
  if (!rows.length) return h("section", {}, h("h3", { text: t("settings.skills") }), h("p", { class: "quiet", text: t("settings.no_skills") }));
  const off = settings.skills.filter((skill) => !skill.enabled).length;
  const summary = h("summary", {}, h("h3", { text: t("settings.advanced") }), h("span", { class: "quiet", text: off ? t("settings.skills_off", { off, total: rows.length }) : t("settings.skills_on", { total: rows.length }) }));
  return h("section", {}, h("details", { open: rows.length <= FEW || off > 0 }, summary,
    h("p", { class: "quiet", text: t("settings.skills_note") }), ...rows));
}

/** What a person may set of a skill, in every story. */
function skillForm(skill, save) {
  const fields = skill.settings.map((field) => skillField(skill.name, field, (value, control, revert) => save({ skillSettings: { [skill.name]: { [field.key]: value } } }, control, revert)));
  return h("details", { class: "skill-form" }, h("summary", {}, h("span", { text: t("settings.of_skill", { name: skill.name }) })), ...fields);
}

const asText = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));

/** @param {string} skill @param {SkillField} field */
function skillField(skill, { key, title, description = "", kind = "text", value, source, options = [] }, save) {
  const id = `skill-${skill}-${key}`;
  const kept = kind === "secret" ? t("settings.secret") : "";
  const written = kind === "json" ? t("settings.json") : "";
  const note = [description, kept, written, source === "the story" ? t("settings.by_story") : ""].filter(Boolean).join(" ");
  const about = { id, "aria-describedby": note ? `${id}-note` : null };
  let input;
  let now = value;
  if (kind === "switch") input = h("input", { ...about, type: "checkbox", role: "switch", class: "switch", checked: value === true });
  else if (kind === "choice") input = h("select", { ...about, class: "field" }, ...["", ...options.map(asText)].map((text) => h("option", { value: text, text: text || t("settings.as_it_comes"), selected: text === asText(value) })));
  else if (kind === "json") input = h("textarea", { ...about, class: "field", rows: "3", autocomplete: "off", spellcheck: "false", placeholder: t("settings.json_example") }, asText(value));
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
  return h("section", {}, h("h3", { text: t("settings.permissions") }), ...(rows.length ? rows : [h("p", { class: "quiet", text: t("settings.no_permissions") })]));
}

function toggle(id, label, note, value, change, save) {
  const input = h("input", { type: "checkbox", role: "switch", class: "switch", id, checked: value, "aria-describedby": note ? `${id}-note` : null });
  input.addEventListener("change", () => {
    const wanted = input.checked;
    save(change(wanted), input, () => { input.checked = !wanted; });
  });
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: id, text: label }), note ? h("p", { class: "quiet", id: `${id}-note`, text: note }) : ""), input);
}
