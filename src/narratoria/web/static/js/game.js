/**
 * One open story: its world, kept current by the stream, and what a player can do in it.
 * Views are told once per animation frame, however many records came in between; the first after a pause at once.
 */
import { api } from "./api.js";
import { attempt, clearSnackbar } from "./dialogs.js";
import { fold } from "./fold.js";
import { activeTurns, lastTurn, newWorld } from "./world.js";
import { Stream } from "./stream.js";

/** Turns a story opens with, in `early.js` too; older ones come when they are asked for. */
const FIRST_TURNS = 50;
/** Milliseconds. What comes after a pause is shown without waiting for the next frame. */
const ONE_FRAME = 16;
/** When an undo leaves fewer than these on the page, older ones are asked for. */
const FEW_TURNS = 12;
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
    this.begins = 0;
    this.connection = "connecting";
    /** Whether its first records have come; until then nothing can be said of it. */
    this.opened = false;
    /** Between a click and the first record of its turn; the server has not said anything yet. */
    this.sending = false;
    /** While turns are being taken back or brought back. */
    this.moving = false;
    /** What the tools are called before a player; asked for when one is first at work. @type {Map<string, any>|null} */
    this.tools = null;
    /** Called with this game, once a frame. @type {((game: Game) => void)[]} */
    this.views = [];
    this.frame = 0;
    this.shownAt = -Infinity;
  }

  /** @param {{past: any}|null} [first] what the page came with */
  start(first) {
    if (first) this.#begin(first.past);
    this.stream = new Stream(this.id, {
      after: () => this.world.seq,
      turns: () => this.turns,
      waiting: () => this.busy,
      records: (records) => {
        this.#take(records);
        if (this.world.stale || this.#runsDry()) this.stream.restart();
      },
      snapshot: (snapshot) => this.#begin(snapshot),
      status: (status) => {
        this.connection = status;
        this.changed();
      },
    });
  }

  /** From a snapshot, forgetting whatever was there. */
  #begin({ seq, records, earlier }) {
    this.world = newWorld(this.world.rev + 1);
    this.earlier = earlier;
    /** What was recorded before this is not here. */
    this.begins = earlier ? records[0].seq + 1 : 0;
    this.#take(records);
    this.world.seq = Math.max(this.world.seq, seq);
    this.world.stale = false;
  }

  #take(records) {
    this.opened = true;
    for (const record of records) fold(this.world, record);
    // a short turn comes whole, in one message: that it runs may never be seen
    if (this.sending && records.some((record) => record.seq > this.sentAfter && ANSWERS.has(record.event.type))) this.sending = false;
    this.#told();
  }

  #runsDry() {
    return this.earlier > 0 && !this.busy && activeTurns(this.world).length < FEW_TURNS;
  }

  changed() {
    this.frame ||= requestAnimationFrame(() => this.#show());
  }

  /** The same for what the player waits for, without waiting for the frame unless one was shown just now. */
  #told() {
    if (performance.now() - this.shownAt < ONE_FRAME || document.hidden) return this.changed();
    cancelAnimationFrame(this.frame);
    this.#show();
  }

  #show() {
    this.frame = 0;
    this.shownAt = performance.now(); // before: what a view changes itself waits for the next frame
    for (const view of this.views) view(this);
  }

  /** Twice as many turns: the whole of a long story is a few clicks away, and none of them is slow at first. */
  showEarlier() {
    this.turns = Math.max(this.turns, activeTurns(this.world).length) * 2;
    this.stream.restart();
  }

  /** So many of the newest turns, and those just before them. @param {number} count */
  showNewest(count) {
    this.turns = Math.max(this.turns, count + FEW_TURNS);
    this.stream.restart();
  }

  /** A turn that can be taken back. */
  get canUndo() {
    return (lastTurn(this.world)?.turn ?? 0) > 0;
  }

  get busy() {
    return this.sending || this.world.running !== null;
  }

  /** The title of a tool, or what it does in a sentence; its id is for the Tools view. @param {string} name */
  toolWords(name) {
    if (!this.tools) {
      this.tools = new Map();
      api.tools(this.id).then((tools) => {
        this.tools = new Map(tools.map((tool) => [tool.name, tool]));
        this.world.rev += 1;
        for (const turn of this.world.turns.values()) turn.rev = this.world.rev;
        this.changed();
      }, () => { this.tools = null; });
    }
    const { title = "", description = "" } = this.tools?.get(name) ?? {};
    const sentence = /^.*?(?=[.!?。！？](\s|$)|$)/su.exec(description.trim())[0];
    return { title, sentence: sentence.length > 90 ? `${sentence.slice(0, 88)}…` : sentence };
  }

  /** @param {string} prompt @param {"player"|"choice"} origin @returns {Promise<boolean>} whether it was taken */
  async send(prompt, origin) {
    if (this.busy || !prompt.trim()) return false;
    return this.begin(() => api.prompt(this.id, prompt, origin));
  }

  /** Let the story go on without a word. */
  async goOn() {
    if (!this.busy && !this.moving) await this.begin(() => api.goOn(this.id));
  }

  async cancel() {
    clearSnackbar();
    await attempt(() => api.cancel(this.id));
    this.sending = false;
    this.changed();
  }

  /** Ask for a turn, and be busy until its first record is there. @param {() => Promise<any>} request */
  async begin(request) {
    clearSnackbar();
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

  /** Run what moves between turns, one at a time. @param {() => Promise<void>} move */
  async move(move) {
    if (this.moving || this.busy) return;
    clearSnackbar();
    this.moving = true;
    this.changed();
    try {
      await move();
    } finally {
      this.moving = false;
      this.changed();
    }
  }
}
