/** What can be done with a recorded call: take it apart, run it again, edit its input, copy it as a command. */
import { api } from "./api.js";
import { ask, attempt, snackbar } from "./dialogs.js";
import { duration, h, setText } from "./dom.js";
import { callParts, copyText, STATUS } from "./callparts.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

export class CallDetails {
  /** @param {import("./game.js").Game} game @param {import("./world.js").Call} call */
  constructor(game, call) {
    this.game = game;
    this.call = call;
    this.seen = "";
    this.parts = h("div", { class: "call-parts" }, h("p", { class: "quiet", text: t("again.looking") }));
    this.again = this.#button("retry", t("again.run"), () => this.#run());
    this.edit = this.#button("edit", t("again.edit"), () => this.#openEditor());
    this.copy = this.#button("copy", t("again.copy"), () => this.#copyCommand());
    this.actions = h("div", { class: "call-actions", role: "group", "aria-label": t("again.group", { tool: call.tool }), hidden: true }, this.again, this.edit, this.copy);
    this.why = h("p", { class: "quiet", hidden: true });
    this.place = h("div", { class: "call-again-place" });
    this.command = h("pre", { class: "call-command", tabindex: "0", hidden: true });
    this.node = h("div", { class: "call-details" }, this.actions, this.why, this.command, this.place, this.parts);
  }

  #button(symbol, label, run) {
    return h("button", { class: "button tonal small", on: { click: run } }, icon(symbol), h("span", { text: label }));
  }

  /** Look again when an attempt or the turn has ended, not for every line of a log. */
  update(call) {
    this.call = call;
    if (this.looking || this.seen === this.#stage()) return;
    this.looking = true;
    this.#look();
  }

  #stage() {
    const { call } = this;
    return `${call.attempt} ${call.status} ${this.game.world.turns.get(call.turn)?.outcome}`;
  }

  async #look() {
    this.seen = this.#stage();
    try {
      this.#show(await api.call(this.game.id, this.call.id, this.call.turn));
    } catch (error) {
      this.parts.replaceChildren(h("p", { class: "quiet", text: error.message }));
    } finally {
      this.looking = false;
    }
    this.update(this.call);
  }

  #show(details) {
    this.details = details;
    const opened = [...this.parts.querySelectorAll("details")].map((one) => one.open);
    const { id, turn } = this.call;
    this.parts.replaceChildren(...callParts(details.call, (first, most) => api.callEvents(this.game.id, id, turn, first, most)));
    [...this.parts.querySelectorAll("details")].forEach((one, index) => { one.open = opened[index] ?? false; });
    this.actions.hidden = this.call.ended === null;
    this.again.hidden = this.edit.hidden = Boolean(details.refused);
    this.copy.hidden = !details.command;
    const why = [details.refused, ...(details.command || details.refused ? [] : details.notes)].filter(Boolean).join(" ");
    this.why.hidden = !why || this.call.ended === null;
    setText(this.why, why ? why.charAt(0).toUpperCase() + why.slice(1) : "");
  }

  #copyCommand() {
    setText(this.command, this.details.command);
    this.command.hidden = false;
    const notes = this.details.notes.map((note) => ` ${note.charAt(0).toUpperCase()}${note.slice(1)}.`).join("");
    copyText(this.details.command, `${t("again.copied")}${notes}`, this.command);
  }

  #openEditor() {
    const id = `input-${this.call.id}`;
    const field = h("textarea", { class: "field mono", id, rows: 6, spellcheck: "false", "aria-describedby": `${id}-fault` });
    const fault = h("p", { class: "fault", id: `${id}-fault`, role: "alert", hidden: true });
    const close = () => { this.place.replaceChildren(); this.edit.focus(); };
    const run = () => {
      const read = readObject(field.value);
      fault.hidden = Boolean(read.value);
      setText(fault, read.fault ?? "");
      field.setAttribute("aria-invalid", String(!read.value));
      if (read.value) this.#run(read.value);
      else field.focus();
    };
    field.value = JSON.stringify(this.edited ?? this.details.call.input, null, 2);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
      else if (event.key === "Escape") close();
    });
    this.place.replaceChildren(h("div", { class: "call-again" },
      h("label", { for: id, text: t("approval.as_json") }), field, fault,
      h("div", { class: "call-actions" }, h("button", { class: "button filled small", on: { click: run } }, icon("retry"), h("span", { text: t("approval.run") })),
        h("button", { class: "button text small", text: t("page.close"), on: { click: close } }), h("span", { class: "quiet", text: t("again.keys") }))));
    field.focus();
  }

  async #run(input) {
    const { outside } = this.details;
    if (outside.length && !(await this.#agreed(outside))) return;
    if (input) this.edited = input;
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    const began = performance.now();
    const elapsed = h("span", { class: "quiet elapsed" });
    const timer = setInterval(() => setText(elapsed, duration((performance.now() - began) / 1000)), 100);
    const halt = h("button", { class: "button text small", text: t("again.stop"), on: { click: () => stop.abort() } });
    this.place.replaceChildren(h("div", { class: "call-again", role: "status" }, h("p", { class: "running-again" }, icon("clock"), h("span", { text: t("again.running", { tool: this.call.tool }) }), elapsed, halt), h("progress", { "aria-label": t("again.running", { tool: this.call.tool }) })));
    halt.focus();
    const outcome = await attempt(() => api.runCall(this.game.id, { call: this.call.id, turn: this.call.turn, input: input ?? undefined, agreed: outside.length > 0 }, stop.signal));
    clearInterval(timer);
    if (this.stop !== stop) return;
    if (outcome) this.#showOutcome(outcome, input);
    else {
      this.place.replaceChildren();
      if (stop.signal.aborted) snackbar(t("again.stopped"));
      this.again.focus();
    }
  }

  async #agreed(outside) {
    const answer = await ask(t("again.outside"), [
      h("p", { text: t("again.outside_note", { tool: this.call.tool }) }),
      h("ul", {}, ...outside.map((text) => h("li", { dir: "auto", text }))),
    ], [{ label: t("again.leave"), value: "", focus: true }, { label: t("again.even_so"), value: "ok", kind: "danger" }]);
    return answer === "ok";
  }

  #showOutcome({ call, events, differs }, input) {
    const [label, symbol] = STATUS[call.state] ?? STATUS.failed;
    const title = h("h3", { tabindex: "-1", text: input ? t("again.edited") : t("again.title") });
    const close = h("button", { class: "icon-button", "aria-label": t("again.close"), on: { click: () => { this.place.replaceChildren(); this.again.focus(); } } }, icon("close"));
    const same = differs.length ? t("again.differs", { what: differs.join(", ") }) : t("again.same");
    const read = async (first, most) => ({ total: events.length, events: events.slice(first, first + most) });
    const shown = { ...call, eventCount: events.length };
    const left = call.eventCount - events.length;
    this.place.replaceChildren(h("section", { class: "call-again result", "aria-label": t("again.title") },
      h("header", { class: "card-head" }, title, h("span", { class: `chip ${call.state}` }, icon(symbol), h("span", { text: label })), h("span", { class: "quiet", text: duration(call.duration) }), close),
      h("p", { class: "scratch-note" }, icon("info"), h("span", { text: `${t("again.scratch")} ${same}` })),
      call.ok ? (call.message ? h("p", { class: "call-message", dir: "auto", text: call.message }) : "") : h("div", { class: "call-error" }, h("p", {}, h("code", { text: call.errorCode ?? call.state }), " ", h("span", { dir: "auto", text: call.error ?? "" }))),
      ...callParts(shown, read, { links: false }),
      left > 0 ? h("p", { class: "quiet", text: t("again.more_events", { count: left }) }) : ""));
    title.focus();
  }
}

function readObject(text) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return { value };
    return { fault: t("again.object") };
  } catch (error) {
    return { fault: t("page.not_json", { reason: `${error.message.replace(/, ".*" is not valid JSON$/s, "")}.` }) };
  }
}
