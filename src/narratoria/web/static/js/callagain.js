/** What can be done with a recorded call: take it apart, run it again, edit its input, copy it as a command. */
import { api } from "./api.js";
import { ask, attempt, snackbar } from "./dialogs.js";
import { duration, h, setText } from "./dom.js";
import { callParts, copyText, STATUS } from "./callparts.js";
import { icon } from "./icons.js";

export class CallDetails {
  /** @param {import("./game.js").Game} game @param {import("./world.js").Call} call */
  constructor(game, call) {
    this.game = game;
    this.call = call;
    this.seen = "";
    this.parts = h("div", { class: "call-parts" }, h("p", { class: "quiet", text: "Looking it up…" }));
    this.again = this.#button("retry", "Run it again", () => this.#run());
    this.edit = this.#button("edit", "Edit the input and run", () => this.#openEditor());
    this.copy = this.#button("copy", "Copy as command", () => this.#copyCommand());
    this.actions = h("div", { class: "call-actions", role: "group", "aria-label": `Try ${call.tool} again`, hidden: true }, this.again, this.edit, this.copy);
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
    copyText(this.details.command, `The command is on the clipboard.${notes}`, this.command);
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
      h("label", { for: id, text: "Input, as JSON" }), field, fault,
      h("div", { class: "call-actions" }, h("button", { class: "button filled small", on: { click: run } }, icon("retry"), h("span", { text: "Run with this input" })),
        h("button", { class: "button text small", text: "Close", on: { click: close } }), h("span", { class: "quiet", text: "Ctrl+Enter runs, Escape closes" }))));
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
    const halt = h("button", { class: "button text small", text: "Stop", on: { click: () => stop.abort() } });
    this.place.replaceChildren(h("div", { class: "call-again", role: "status" }, h("p", { class: "running-again" }, icon("clock"), h("span", { text: `Running ${this.call.tool} again…` }), elapsed, halt), h("progress", { "aria-label": `Running ${this.call.tool} again` })));
    halt.focus();
    const outcome = await attempt(() => api.runCall(this.game.id, { call: this.call.id, turn: this.call.turn, input: input ?? undefined, agreed: outside.length > 0 }, stop.signal));
    clearInterval(timer);
    if (this.stop !== stop) return;
    if (outcome) this.#showOutcome(outcome, input);
    else {
      this.place.replaceChildren();
      if (stop.signal.aborted) snackbar("Stopped. Its process was ended, and nothing of the story was touched.");
      this.again.focus();
    }
  }

  async #agreed(outside) {
    const answer = await ask("This reaches outside the story", [
      h("p", { text: `Running ${this.call.tool} again does this once more, and the story cannot take it back:` }),
      h("ul", {}, ...outside.map((text) => h("li", { dir: "auto", text }))),
    ], [{ label: "Do not run", value: "", focus: true }, { label: "Run it even so", value: "ok", kind: "danger" }]);
    return answer === "ok";
  }

  #showOutcome({ call, events, differs }, input) {
    const [label, symbol] = STATUS[call.state] ?? STATUS.failed;
    const title = h("h3", { tabindex: "-1", text: input ? "Run with the edited input" : "Run again" });
    const close = h("button", { class: "icon-button", "aria-label": "Close this result", on: { click: () => { this.place.replaceChildren(); this.again.focus(); } } }, icon("close"));
    const same = differs.length ? `It differs from the record: ${differs.join(", ")}.` : "It came out as recorded.";
    const read = async (first, most) => ({ total: events.length, events: events.slice(first, first + most) });
    const shown = { ...call, eventCount: events.length };
    const left = call.eventCount - events.length;
    this.place.replaceChildren(h("section", { class: "call-again result", "aria-label": "Run again" },
      h("header", { class: "card-head" }, title, h("span", { class: `chip ${call.state}` }, icon(symbol), h("span", { text: label })), h("span", { class: "quiet", text: duration(call.duration) }), close),
      h("p", { class: "scratch-note" }, icon("info"), h("span", { text: `On the state it had then. Nothing of the story was touched, and nothing of this is kept. ${same}` })),
      call.ok ? (call.message ? h("p", { class: "call-message", dir: "auto", text: call.message }) : "") : h("div", { class: "call-error" }, h("p", {}, h("code", { text: call.errorCode ?? call.state }), " ", h("span", { dir: "auto", text: call.error ?? "" }))),
      ...callParts(shown, read, { links: false }),
      left > 0 ? h("p", { class: "quiet", text: `and ${left.toLocaleString("en")} more events` }) : ""));
    title.focus();
  }
}

function readObject(text) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return { value };
    return { fault: "The input has to be an object: { … }." };
  } catch (error) {
    return { fault: `This is not JSON: ${error.message.replace(/, ".*" is not valid JSON$/s, "")}.` };
  }
}
