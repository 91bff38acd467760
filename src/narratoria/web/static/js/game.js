/**
 * One open story: its world, kept current by the stream, and what a player can do in it.
 * Views are told once per animation frame, however many records came in between.
 */
import { api } from "./api.js";
import { attempt, askText, snackbar } from "./dialogs.js";
import { activeTurns, fold, lastTurn, newWorld } from "./fold.js";
import { Stream } from "./stream.js";

/** Turns a story opens with, in `early.js` too; older ones come when they are asked for. */
const FIRST_TURNS = 50;
/** The first thing a prompt leads to: its turn, or why there is none. */
const ANSWERS = new Set(["turn_started", "notice"]);

export class Game {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.world = newWorld();
    this.turns = FIRST_TURNS;
    /** How many older turns the server has left out. */
    this.earlier = 0;
    this.connection = "connecting";
    /** Between a click and the first record of its turn; the server has not said anything yet. */
    this.sending = false;
    /** Called with this game, once a frame. @type {((game: Game) => void)[]} */
    this.views = [];
    this.frame = 0;
  }

  start() {
    this.stream = new Stream(this.id, {
      after: () => this.world.seq,
      turns: () => this.turns,
      waiting: () => this.busy,
      records: (records) => {
        this.#take(records);
        if (this.world.stale) this.stream.restart();
      },
      snapshot: ({ records, earlier }) => {
        this.world = newWorld(this.world.rev + 1);
        this.earlier = earlier;
        this.#take(records);
        this.world.stale = false;
      },
      status: (status) => {
        this.connection = status;
        this.changed();
      },
    });
  }

  #take(records) {
    for (const record of records) fold(this.world, record);
    // a short turn comes whole, in one message: that it runs may never be seen
    if (this.sending && records.some((record) => record.seq > this.sentAfter && ANSWERS.has(record.event.type))) this.sending = false;
    this.changed();
  }

  changed() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const view of this.views) view(this);
    });
  }

  /** Twice as many turns: the whole of a long story is a few clicks away, and none of them is slow at first. */
  showEarlier() {
    this.turns = Math.max(this.turns, activeTurns(this.world).length) * 2;
    this.stream.restart();
  }

  get busy() {
    return this.sending || this.world.running !== null;
  }

  /** @param {string} prompt @param {"player"|"choice"} origin @returns {Promise<boolean>} whether it was taken */
  async send(prompt, origin) {
    if (this.busy || !prompt.trim()) return false;
    return this.#begin(() => api.prompt(this.id, prompt, origin));
  }

  async cancel() {
    await attempt(() => api.cancel(this.id));
    this.sending = false;
    this.changed();
  }

  async undo() {
    const undone = await attempt(() => api.undo(this.id));
    if (!undone) return;
    const stays = undone.irreversible ?? [];
    snackbar(stays.length ? `The turn is undone. What cannot be taken back: ${stays.join("; ")}` : "The last turn is undone; Redo brings it back.");
  }

  async redo() {
    await attempt(() => api.redo(this.id));
  }

  async retry(prompt) {
    await this.#begin(() => api.retry(this.id, prompt));
  }

  async editAndRetry(turn) {
    const prompt = await askText("Say it differently", "Your words", turn.prompt, "Retry with this");
    if (!prompt) return;
    if (await this.#undoAfter(turn.turn)) await this.retry(prompt);
  }

  async retryFrom(turn) {
    if (await this.#undoAfter(turn.turn)) await this.retry();
  }

  /** Take back `turn` and everything after it. */
  async undoTo(turn) {
    if (await this.#undoAfter(turn.turn)) await this.undo();
  }

  async branch(turn) {
    const made = await attempt(() => api.branch(this.id, turn.turn));
    if (made) location.assign(`/play/${encodeURIComponent(made.id)}#narrative`);
  }

  async branchHere() {
    const turn = lastTurn(this.world);
    if (turn) await this.branch(turn);
  }

  async #undoAfter(number) {
    const later = activeTurns(this.world).filter((turn) => turn.turn > number).length;
    for (let count = 0; count < later; count += 1) {
      if (!(await attempt(() => api.undo(this.id).then(() => true)))) return false;
    }
    return true;
  }

  async #begin(request) {
    this.sending = true;
    this.sentAfter = this.world.seq;
    this.changed();
    const taken = await attempt(() => request().then(() => true));
    if (!taken) {
      this.sending = false;
      this.changed();
    }
    return Boolean(taken);
  }
}
