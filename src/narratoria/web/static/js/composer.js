/** Where the player writes, and the actions on the newest turn. */
import { h, setText } from "./dom.js";
import { activeTurns, endingOf, lastTurn } from "./fold.js";
import { icon } from "./icons.js";

export class Composer {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.field = h("textarea", { id: "prompt", rows: 1, maxlength: 8000, autocomplete: "off", enterkeyhint: "send", "aria-describedby": "prompt-hint", placeholder: " ", dir: "auto" });
    this.sendButton = h("button", { class: "button filled send", type: "submit" }, icon("send"), h("span", { text: "Send" }));
    this.cancelButton = h("button", { class: "button tonal", type: "button", hidden: true, on: { click: () => game.cancel() } }, icon("stop"), h("span", { text: "Cancel" }));
    this.undoButton = action("undo", "Undo", () => game.undo());
    this.redoButton = action("redo", "Redo", () => game.redo());
    this.retryButton = action("retry", "Retry", () => game.retry());
    this.branchButton = action("branch", "Branch", () => game.branchHere());
    this.status = h("p", { class: "status", role: "status" });
    this.node = h("form", { class: "composer", "aria-label": "Your turn" },
      h("div", { class: "composer-bar" }, this.status, this.undoButton, this.redoButton, this.retryButton, this.branchButton),
      h("div", { class: "composer-field" }, h("label", { for: "prompt", text: "What do you do?" }), this.field, this.cancelButton, this.sendButton),
      h("p", { id: "prompt-hint", class: "visually-hidden", text: "Enter sends, Shift and Enter begin a new line, arrow up brings back what you said before." }));
    this.back = 0;
    this.node.addEventListener("submit", (event) => { event.preventDefault(); this.#send(); });
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.field.addEventListener("input", () => { this.back = 0; this.#enable(); });
  }

  update() {
    const { game } = this;
    const { world, busy } = game;
    const last = lastTurn(world);
    this.node.classList.toggle("busy", busy);
    this.cancelButton.hidden = !busy;
    const playable = last !== null && last.turn > 0;
    this.undoButton.disabled = busy || !playable;
    this.retryButton.disabled = busy || !playable;
    this.branchButton.disabled = busy || !last;
    this.redoButton.disabled = busy || !world.redo.length;
    setText(this.status, statusText(game, last));
    this.#enable();
  }

  #enable() {
    this.sendButton.disabled = this.game.busy || !this.field.value.trim();
  }

  async #send() {
    const text = this.field.value.trim();
    const choices = endingOf(this.game.world) ? [] : lastTurn(this.game.world)?.choices ?? [];
    const picked = /^[1-9]$/.test(text) ? choices[text - 1] : choices.find((choice) => choice === text);
    if (!text || this.game.busy) return;
    this.field.value = "";
    this.back = 0;
    if (!(await this.game.send(picked ?? text, picked ? "choice" : "player")) && !this.field.value) this.field.value = text;
    this.#enable();
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
    this.#enable();
    return true;
  }
}

function action(name, label, run) {
  return h("button", { class: "button text small", type: "button", title: label, on: { click: run } }, icon(name), h("span", { text: label }));
}

function statusText(game, last) {
  const { world } = game;
  if (game.connection === "offline") return "Offline";
  if (!game.busy) return last?.outcome === "cancelled" ? "Stopped" : game.connection === "connecting" ? "Opening the story…" : endingOf(world) ? "The end" : "Your turn";
  const running = last?.calls.map((id) => world.calls.get(id)).filter((call) => call && call.ended === null) ?? [];
  if (running.length) return running.map((call) => (call.status === "retrying" ? `${call.tool} tries again` : `${call.tool} is at work`)).slice(0, 2).join(", ");
  return "The narrator is thinking…";
}
