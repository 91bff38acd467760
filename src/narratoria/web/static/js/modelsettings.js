/** The language model, in the settings: where its server is, its key, its name, and a test. */
import { api } from "./api.js";
import { coded, duration, h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

/**
 * @typedef {{name: string, title: string, address: string}} Preset
 * @typedef {{address: string, model: string, preset: string, key: string, timeout: number, inputPrice: number, outputPrice: number,
 *   environment: string, missing: string, problem: string, presets: Preset[]}} ModelView
 * @typedef {{preset: string, title: string, address: string, models: string[], wantsKey: boolean}} FoundServer
 */

const LONGEST_NAME = 200;
const LONGEST_KEY = 2000;
/** Nothing moves while the button is being pressed that takes the focus from a field. */
const PAUSE = 200;
/** The choice in the list of models that stands for a name it does not have. */
const ANOTHER = "\n";
const PLACES = { keyring: t("model.keyring"), file: t("model.file") };
const KEY_NOTE = t("model.no_key");

/** @param {() => void} changed the model is another one now, or none */
export function modelSection(changed) {
  const place = h("div", {}, h("p", { class: "quiet", text: t("model.reading") }));
  show(place, changed);
  return h("section", { class: "model" }, h("h3", { text: t("narrator.llm") }), place);
}

async function show(place, changed) {
  try {
    const view = await api.model();
    const again = async () => {
      await show(place, changed);
      place.querySelector("summary")?.focus();
      changed();
    };
    place.replaceChildren(...new ModelForm(view, again).nodes);
  } catch (error) {
    if (error.status === 403) place.closest("section")?.remove(); // the operator's, where there is one
    else place.replaceChildren(h("p", { class: "quiet" }, ...coded(error.message)));
  }
}

class ModelForm {
  /** @param {ModelView} view @param {() => Promise<void>} saved */
  constructor(view, saved) {
    this.view = view;
    this.saved = saved;
    this.found = h("div", { class: "model-found", role: "group", "aria-label": t("model.found"), hidden: true });
    this.details = h("details", { class: "model-form" }, h("summary", {}, h("span", { text: view.address ? t("model.change") : t("model.set_up") })));
    this.nodes = [h("p", { class: "quiet", text: summary(view) }), ...remarks(view)];
    if (view.missing) return;
    this.#fields();
    this.nodes.push(this.found, this.details);
    this.details.addEventListener("toggle", () => this.details.open && !this.listed && this.#list());
    this.#find();
  }

  #fields() {
    const { view } = this;
    const options = [...view.presets.map(({ name, title }) => h("option", { value: name, text: title, selected: name === view.preset }))];
    if (!view.preset) options.unshift(h("option", { value: "", text: t("model.another"), selected: true }));
    this.preset = h("select", { id: "model-preset" }, ...options);
    this.address = h("input", { class: "field", id: "model-address", type: "url", value: view.address, maxlength: 500, autocomplete: "off", spellcheck: "false", placeholder: "http://127.0.0.1:11434/v1" });
    this.key = h("input", { class: "field", id: "model-key", type: "password", maxlength: LONGEST_KEY, autocomplete: "off", spellcheck: "false", "aria-describedby": "model-key-note", placeholder: view.key ? "••••••••" : "" });
    this.keyNote = h("p", { class: "quiet", id: "model-key-note", text: view.key ? PLACES[view.key] : KEY_NOTE });
    this.remove = h("button", { class: "button text", type: "button", text: t("model.remove_key"), hidden: !view.key, on: { click: () => this.#removeKey() } });
    this.names = h("select", { id: "model-name", "aria-describedby": "model-name-note" });
    this.name = h("input", { class: "field", id: "model-other-name", "aria-label": t("model.name"), maxlength: LONGEST_NAME, value: view.model, autocomplete: "off", spellcheck: "false", hidden: true });
    this.nameNote = h("p", { class: "quiet", id: "model-name-note", role: "status" });
    this.timeout = number("model-timeout", view.timeout, 1, 600);
    this.inputPrice = number("model-input-price", view.inputPrice || "", 0, 10000);
    this.outputPrice = number("model-output-price", view.outputPrice || "", 0, 10000);
    this.result = h("p", { class: "model-result", role: "status" });
    this.test = h("button", { class: "button tonal", type: "button", text: t("model.test"), on: { click: () => this.#test() } });
    this.save = h("button", { class: "button filled", type: "submit", text: t("model.save") });
    const forget = h("button", { class: "button text", type: "button", text: t("model.forget"), on: { click: () => this.#forget() } });
    const form = h("form", { novalidate: true },
      field(t("model.server"), this.preset), field(t("model.address"), this.address), field(t("model.key"), this.key, h("div", {}, this.keyNote, this.remove)),
      field(t("model.model"), this.names, this.nameNote, this.name),
      h("details", { class: "model-more" }, h("summary", {}, h("span", { text: t("model.more") })),
        field(t("model.timeout"), this.timeout),
        field(t("model.input_price"), this.inputPrice), field(t("model.output_price"), this.outputPrice),
        h("p", { class: "quiet", text: t("model.price_note") })),
      h("div", { class: "model-actions" }, view.address ? forget : "", this.test, this.save), this.result);
    this.#offer([]);
    this.preset.addEventListener("change", () => {
      this.address.value = view.presets.find(({ name }) => name === this.preset.value)?.address ?? this.address.value;
      this.#moved();
    });
    this.address.addEventListener("change", () => {
      this.preset.value = view.presets.find(({ address }) => address === this.address.value.trim())?.name ?? this.preset.value;
      this.#moved();
    });
    this.key.addEventListener("change", () => this.#list());
    this.names.addEventListener("change", () => this.#showName(true));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.#save(); });
    this.details.append(form);
  }

  #moved() {
    this.#showKey();
    this.#list();
  }

  /** A key that is kept is for its own server alone. */
  #showKey() {
    const same = sameServer(this.view.address, this.address.value);
    this.removed = false;
    this.remove.hidden = !this.view.key || !same;
    this.key.placeholder = this.view.key && same ? "••••••••" : "";
    setText(this.keyNote, this.view.key ? (same ? PLACES[this.view.key] : t("model.other_key")) : KEY_NOTE);
  }

  #removeKey() {
    this.removed = true;
    this.remove.hidden = true;
    this.key.value = this.key.placeholder = "";
    setText(this.keyNote, t("model.key_goes"));
    this.key.focus();
  }

  /** Servers on this computer, looked for whenever the settings are opened. */
  async #find() {
    /** @type {FoundServer[]} */
    const servers = await api.findModels().catch(() => []);
    const others = servers.filter(({ address }) => !sameServer(address, this.view.address));
    this.found.hidden = !others.length;
    this.found.replaceChildren(...others.map((server) => {
      const has = server.wantsKey ? t("model.wants_key") : server.models.length === 1 ? server.models[0] : server.models.length ? t("model.models", { count: server.models.length }) : t("model.none");
      const use = h("button", { class: "button tonal", text: t("model.use"), "aria-label": t("model.use_named", { name: server.title }), on: { click: () => this.#use(server) } });
      return h("div", { class: "setting" }, h("div", {}, h("strong", { text: t("model.runs", { name: server.title }) }), h("p", { class: "quiet", dir: "auto", text: has })), use);
    }));
  }

  #use(server) {
    this.preset.value = server.preset;
    this.address.value = server.address;
    this.listed = true;
    this.found.hidden = true;
    this.details.open = true;
    this.#showKey();
    this.#offer(server.models, server.wantsKey ? "" : counted(server.models.length, 0));
    (server.wantsKey ? this.key : this.names.hidden ? this.name : this.names).focus();
  }

  async #list() {
    this.listed = true;
    const asked = (this.asking = {});
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (this.asking !== asked) return;
    if (!this.address.value.trim()) return this.#offer([]);
    setText(this.nameNote, t("model.asking"));
    this.names.setAttribute("aria-busy", "true");
    try {
      const { models, leftOut, says, advice } = await api.listModels(this.#server());
      if (this.asking !== asked) return; // another address was entered meanwhile
      this.#offer(models, models.length ? counted(models.length, leftOut) : [says || t("model.lists_none"), advice].filter(Boolean).join(" "));
    } catch (error) {
      if (this.asking === asked) this.#offer([], error.message);
    } finally {
      if (this.asking === asked) this.names.removeAttribute("aria-busy");
    }
  }

  /** @param {string[]} models */
  #offer(models, note = "") {
    const wanted = this.#model() || this.view.model;
    const stays = wanted && (this.touched || models.includes(wanted) || sameServer(this.view.address, this.address.value));
    const chosen = models.includes(wanted) ? wanted : stays || !models.length ? ANOTHER : models[0];
    this.names.replaceChildren(...models.map((name) => h("option", { value: name, text: name })), h("option", { value: ANOTHER, text: t("model.another_name") }));
    this.names.value = chosen;
    this.names.hidden = !models.length;
    if (chosen === ANOTHER) this.name.value = wanted;
    setText(this.nameNote, note);
    this.#showName(false);
    if ([this.test, this.save].includes(document.activeElement)) this.#show(); // the note may have pushed it out of sight
  }

  #showName(chosen) {
    this.touched ||= chosen;
    if (chosen) this.#say("");
    const other = this.names.value === ANOTHER;
    this.name.hidden = !other;
    if (other && chosen) this.name.focus();
  }

  #model() {
    return this.names.value === ANOTHER || !this.names.value ? this.name.value.trim() : this.names.value;
  }

  #server() {
    const key = this.key.value.trim();
    const server = { address: this.address.value.trim(), model: this.#model(), preset: this.preset.value };
    return { ...server, ...(key || this.removed ? { key } : {}), timeout: Number(this.timeout.value) || this.view.timeout };
  }

  #say(text, kind = "") {
    this.result.className = `model-result ${kind}`;
    this.result.replaceChildren(...(text ? [kind ? icon(kind === "good" ? "check" : "error") : "", h("span", { dir: "auto", text })] : []));
    this.#show();
  }

  #show() {
    if (this.result.textContent) this.result.scrollIntoView({ block: "nearest" });
  }

  async #busy(button, text, work) {
    this.#say(text);
    for (const one of [this.test, this.save]) one.disabled = true;
    try {
      await work();
    } catch (error) {
      this.#say([error.message, ...(error.suggestions ?? [])].join(" "), "wrong");
    } finally {
      for (const one of [this.test, this.save]) one.disabled = false;
      if (button.isConnected && document.activeElement === document.body) button.focus();
    }
  }

  #test() {
    return this.#busy(this.test, t("model.testing"), async () => {
      const { ok, seconds, words, says, advice } = await api.testModel(this.#server());
      if (!ok) this.#say([says, advice].filter(Boolean).join(" "), "wrong");
      else this.#say(words ? t("model.answered", { time: duration(seconds), words }) : t("model.speechless", { time: duration(seconds) }), "good");
    });
  }

  #save() {
    return this.#busy(this.save, t("settings.saving"), async () => {
      await api.saveModel({ ...this.#server(), inputPrice: Number(this.inputPrice.value) || 0, outputPrice: Number(this.outputPrice.value) || 0 });
      await this.saved();
    });
  }

  #forget() {
    return this.#busy(this.save, t("model.forgetting"), async () => {
      await api.forgetModel();
      await this.saved();
    });
  }
}

function summary({ address, model }) {
  if (!address) return t("model.none_yet");
  return t("model.at", { model: model || t("model.only"), address });
}

/** @param {ModelView} view */
function remarks({ address, environment, missing, problem }) {
  const lines = [
    missing && t("model.missing", { reason: missing }),
    problem,
    environment && (address || environment.startsWith("NARRATORIA") ? t("model.environment", { name: environment }) : t("model.environment_until", { name: environment })),
  ];
  return lines.filter(Boolean).map((line) => h("p", { class: "quiet model-remark" }, ...coded(line)));
}

function field(label, control, note = null, more = null) {
  return h("div", { class: "setting" }, h("div", {}, h("label", { for: control.id, text: label }), note ?? ""), control, more ?? "");
}

function number(id, value, min, max) {
  return h("input", { class: "field", id, type: "number", value: String(value), min, max, step: "any", inputmode: "decimal", autocomplete: "off" });
}

function counted(number, leftOut) {
  const models = t("model.models", { count: number });
  return leftOut ? t("model.left_out", { models, number: leftOut }) : models;
}

function sameServer(one, other) {
  try {
    return new URL(one).origin === new URL(other).origin;
  } catch {
    return false;
  }
}
