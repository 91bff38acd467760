/** Where the player writes, and the actions on the newest turn. */
import { isReading, stopReading } from "./aloud.js";
import { LONGEST_PROMPT } from "./dialogs.js";
import { h, setText } from "./dom.js";
import { isStrayLetter } from "./focus.js";
import { activeTurns, endingOf, lastTurn, openQuestions } from "./world.js";
import { icon } from "./icons.js";
import { branch, redo, retry, undo } from "./moves.js";
import { recall, remember } from "./tab.js";
import { t } from "./words.js";

/** The name of the field; where there is no room for its label, the placeholder shows it. */
const QUESTION = t("composer.question");

export class Composer {
  /** @param {import("./game.js").Game} game @param {HTMLElement} jump the way down to what is below the edge of the story */
  constructor(game, jump) {
    this.game = game;
    this.field = h("textarea", { id: "prompt", rows: 1, maxlength: LONGEST_PROMPT, autocomplete: "off", enterkeyhint: "send", "aria-describedby": "prompt-hint", placeholder: QUESTION, dir: "auto" });
    this.sendButton = h("button", { class: "button filled send", type: "submit" }, icon("send"), h("span", { text: t("composer.send") }));
    this.goOnButton = h("button", { class: "button tonal send", type: "button", hidden: true, title: t("composer.continue"), on: { click: () => game.goOn() } }, icon("skip"), h("span", { text: t("composer.continue") }));
    this.cancelButton = h("button", { class: "button tonal", type: "button", hidden: true, on: { click: () => game.cancel() } }, icon("stop"), h("span", { text: t("composer.cancel") }));
    this.undoButton = action("undo", t("composer.undo"), () => undo(game));
    this.redoButton = action("redo", t("composer.redo"), () => redo(game));
    this.retryButton = action("retry", t("composer.retry"), () => retry(game));
    this.branchButton = action("branch", t("composer.branch"), () => branch(game));
    this.status = h("p", { class: "status", role: "status" });
    this.quiet = h("button", { class: "jump", type: "button", hidden: true, on: { click: stopReading } }, icon("stop"), h("span", { text: t("composer.stop_reading") }));
    addEventListener("reading", () => { this.quiet.hidden = !isReading(); });
    /** What was sent while a turn ran: it is sent when that has ended. */
    this.next = "";
    this.nextWords = h("span", { dir: "auto" });
    this.nextButton = h("button", { class: "jump", type: "button", hidden: true, on: { click: () => this.#takeBack() } }, h("span", { class: "visually-hidden", text: t("composer.change_next") }), this.nextWords, icon("close"));
    this.node = h("form", { class: "composer", "aria-label": t("composer.your_turn") },
      h("div", { class: "composer-bar" }, this.status, jump, this.quiet, this.nextButton,
        h("div", { class: "composer-actions" }, this.undoButton, this.redoButton, this.retryButton, this.branchButton)),
      h("div", { class: "composer-field" }, h("label", { for: "prompt", text: QUESTION }), this.field, this.cancelButton, this.goOnButton, this.sendButton),
      h("p", { id: "prompt-hint", class: "visually-hidden", text: t("composer.hint") }));
    this.back = 0;
    this.node.addEventListener("submit", (event) => { event.preventDefault(); this.#send(); });
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.field.addEventListener("input", () => { this.back = 0; this.#changed(); });
    document.addEventListener("keydown", (event) => this.#stray(event));
    setTimeout(() => this.#recallDraft());
    // on what needs it alone: a property of the root is inherited by everything, which is all styled again
    const { style } = document.getElementById("snackbar");
    new ResizeObserver(() => style.setProperty("--composer-height", `${this.node.offsetHeight}px`)).observe(this.node);
  }

  get #draftKey() {
    return `draft ${this.game.id}`;
  }

  /** Words that were not sent outlive a reload. What a tab keeps is slow to ask for at first, and nobody waits for it. */
  #recallDraft() {
    this.field.value ||= recall(this.#draftKey) ?? "";
    this.#enable();
  }

  /** What is typed beside the field is meant for it. The letter itself lands there, once the field has the focus. */
  #stray(event) {
    if (isStrayLetter(event) && this.field.checkVisibility()) this.field.focus();
  }

  update() {
    const { game } = this;
    const { world, busy } = game;
    const last = lastTurn(world);
    this.node.classList.toggle("busy", busy);
    this.node.classList.toggle("waiting", last !== null && openQuestions(last).length > 0);
    this.cancelButton.hidden = !busy;
    const playable = last !== null && last.turn > 0;
    this.undoButton.disabled = busy || !playable;
    this.retryButton.disabled = busy || !playable;
    this.branchButton.disabled = busy || !last;
    this.redoButton.disabled = busy || !world.redo.length;
    setText(this.status, statusText(game, last));
    this.#enable();
    if (this.next && !busy && game.connection === "live" && !game.moving) this.#sendNext(last);
  }

  /** A turn has ended: what waited for it is sent, unless the player stopped it. */
  #sendNext(last) {
    if (last?.outcome === "cancelled") return this.#takeBack();
    const text = this.next;
    this.#setNext("");
    queueMicrotask(() => this.#give(text));
  }

  #setNext(text) {
    this.next = text;
    setText(this.nextWords, t("composer.next", { text }));
    this.nextButton.hidden = !text;
  }

  /** Put what waits back into the field, to be changed or dropped. */
  #takeBack() {
    this.field.value = [this.next, this.field.value].filter(Boolean).join(" ");
    this.#setNext("");
    this.#changed();
    this.field.focus();
  }

  #changed() {
    remember(this.#draftKey, this.next || this.field.value);
    this.#enable();
  }

  #enable() {
    this.sendButton.disabled = !this.field.value.trim() || Boolean(this.next);
    const { game } = this;
    const idle = !this.field.value.trim() && !game.busy && !game.moving && game.opened && !endingOf(game.world) && lastTurn(game.world);
    this.goOnButton.hidden = !idle; // where there is nothing to send
    this.sendButton.hidden = Boolean(idle);
  }

  async #send() {
    const text = this.field.value.trim();
    if (!text || this.next) return;
    this.field.value = "";
    this.back = 0;
    if (!this.game.busy) return this.#give(text);
    this.#setNext(text);
    this.#changed();
  }

  async #give(text) {
    const choices = endingOf(this.game.world) ? [] : lastTurn(this.game.world)?.choices ?? [];
    const picked = /^[1-9]$/.test(text) ? choices[text - 1] : choices.find((choice) => choice === text);
    if (!(await this.game.send(picked ?? text, picked ? "choice" : "player")) && !this.field.value) this.field.value = text;
    this.#changed();
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#send();
    } else if (event.key === "Escape" && this.game.busy) {
      this.game.cancel();
    } else if (event.key === "ArrowUp" && this.field.selectionEnd === 0 || (event.key === "ArrowUp" && this.back)) {
      if (this.#recall(this.back + 1)) event.preventDefault();
    } else if (event.key === "ArrowDown" && this.back) {
      this.#recall(this.back - 1);
      event.preventDefault();
    }
  }

  #recall(back) {
    const said = activeTurns(this.game.world).filter((turn) => turn.origin !== "opening" && turn.prompt).map((turn) => turn.prompt);
    if (back > said.length) return false;
    if (this.back === 0) this.draft = this.field.value;
    this.back = back;
    this.field.value = back === 0 ? this.draft : said.at(-back);
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
    this.#changed();
    return true;
  }
}

function action(name, label, run) {
  return h("button", { class: "button text small", type: "button", title: label, on: { click: run } }, icon(name), h("span", { text: label }));
}

function statusText(game, last) {
  const { world } = game;
  if (game.connection === "offline") return t("composer.offline");
  if (game.connection === "refused") return t("composer.not_open");
  if (game.moving && !game.busy) return t("composer.moment");
  if (!game.busy) return last?.outcome === "cancelled" ? t("composer.stopped") : !game.opened ? t("composer.opening") : endingOf(world) ? t("story.the_end") : t("composer.your_turn");
  if (last && openQuestions(last).length) return t("composer.answer");
  const running = last?.calls.map((id) => world.calls.get(id)).filter((call) => call && call.ended === null) ?? [];
  if (running.length) return [...new Set(running.map((call) => actionOf(game, call)))].slice(0, 2).join(" ");
  return t("composer.thinking");
}

function actionOf(game, { tool, status }) {
  const { title, sentence } = game.toolWords(tool);
  const doing = title ? t("composer.at_work", { title }) : sentence || t("composer.story_at_work");
  return status === "retrying" ? t("composer.once_more", { doing }) : `${doing}…`;
}
