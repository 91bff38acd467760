/** One call of a tool: status, attempt, time, progress, log, error, and all its parts. */
import { duration, h, setAttribute, setText } from "./dom.js";
import { icon } from "./icons.js";
import { CallDetails } from "./callagain.js";
import { STATUS } from "./callparts.js";
import { LogView } from "./logview.js";
import { t } from "./words.js";

export class CallCard {
  /** @param {import("./world.js").Call} call @param {import("./game.js").Game} game */
  constructor(call, game) {
    this.call = call;
    this.game = game;
    this.drawn = -1;
    this.status = h("span", { class: "chip" });
    this.elapsed = h("span", { class: "quiet elapsed" });
    this.progress = h("progress", { "aria-label": t("call.progress", { tool: call.tool }) });
    this.message = h("p", { class: "call-message", dir: "auto", hidden: true });
    this.name = h("strong", { class: "call-name" });
    this.id = h("span", { class: "quiet" });
    this.error = h("div", { class: "call-error" });
    this.body = h("div", { class: "call-body" });
    this.summary = h("summary", { class: "call-head" }, icon("chevron"), h("span", { class: "call-title" }, this.name, this.id), this.elapsed, this.status, this.progress);
    this.details = h("details", { class: "card call" }, this.summary, this.body);
    this.node = h("div", { class: "call-frame", id: `call-${call.id}` }, this.details);
    this.details.addEventListener("toggle", () => this.details.open && this.#fill());
  }

  open() {
    this.details.open = true;
    this.#fill();
  }

  /** The log is made when it is first looked at: a thousand closed calls cost a thousand headings. */
  #fill() {
    if (!this.log) {
      const { call } = this;
      this.log = new LogView(call.tool, call.log);
      this.noLog = h("p", { class: "quiet", text: t("call.no_log") });
      this.parts = new CallDetails(this.game, call);
      this.body.append(this.error, this.message, this.log.node, this.noLog, this.parts.node);
    }
    this.#drawBody();
    this.log.update();
    this.parts.update(this.call);
  }

  /** @param {import("./world.js").Call} call the same call, maybe another object after a snapshot */
  update(call) {
    if (call !== this.call) {
      this.call = call;
      this.log?.follow(call.log);
    }
    if (call.ended === null) setText(this.elapsed, duration(Date.now() / 1000 - call.started));
    if (this.drawn === call.rev) return;
    this.drawn = call.rev;
    const [label, symbol] = STATUS[call.status];
    setText(this.name, call.tool);
    setText(this.id, call.toolId && call.toolId !== call.tool ? call.toolId : "");
    if (this.status.dataset.status !== call.status || this.status.dataset.attempt !== String(call.attempt)) {
      this.status.dataset.status = call.status;
      this.status.dataset.attempt = call.attempt;
      this.status.className = `chip ${call.status}`;
      this.status.replaceChildren(icon(symbol), h("span", { text: call.attempt > 1 ? t("call.label_attempt", { label, attempt: call.attempt }) : label }));
    }
    if (call.ended !== null) setText(this.elapsed, call.status === "skipped" ? "" : duration(call.finished?.duration || call.ended - call.started));
    this.progress.hidden = call.ended !== null;
    setAttribute(this.progress, "value", call.progress);
    if (this.details.open) this.#fill();
  }

  #drawBody() {
    const { call } = this;
    const { finished } = call;
    this.noLog.hidden = this.log.lines.length > 0;
    this.log.node.hidden = !this.noLog.hidden;
    const message = finished?.ok ? finished.message || call.summary : call.summary;
    this.message.hidden = !message;
    setText(this.message, message ?? "");
    if (finished && !finished.ok && !this.error.firstChild) this.error.append(...errorText(finished));
  }
}

function errorText(finished) {
  return [
    h("p", {}, h("code", { text: finished.errorCode ?? finished.state }), " ", h("span", { dir: "auto", text: finished.error ?? finished.message ?? "" })),
    ...(finished.suggestions ?? []).map((text) => h("p", { class: "suggestion" }, icon("info"), h("span", { dir: "auto", text }))),
  ];
}
