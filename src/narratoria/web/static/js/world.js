/** The world this page shows, as the fold makes it of records, and what the views ask of it. */
import { merge } from "./merge.js";

/**
 * @typedef {{seq: number, ts: number, turn: number|null, event: any, prose?: {blocks: string[], kept?: number}}} JournalRecord
 * @typedef {{level: string, message: string, fields?: object, ts: number}} LogLine
 * @typedef {{
 *   id: string, tool: string, toolId: string|null, plan: string|null, parent: string|null, turn: number,
 *   status: "running"|"retrying"|"completed"|"failed"|"skipped"|"timeout", started: number, ended: number|null,
 *   attempt: number, attempts: {attempt: number, started: number, ended: number|null, outcome: string, error?: string}[],
 *   input: object, log: LogLine[], progress: number|null, errors: any[], summary: string, finished: any,
 *   announced: Map<string, any>, rev: number,
 * }} Call
 * @typedef {{kind: string, id: string, call?: string, [rest: string]: any}} Item  something in the text of a turn
 * @typedef {{
 *   turn: number, prompt: string, origin: string, ts: number, items: Item[], choices: string[], narrator: string,
 *   passedOver: Object<string, string>, plans: string[], calls: string[], asked: any[], recalled: any[], refusals: any[], patches: object[],
 *   before: any, after: any, outcome: string|null, undone: boolean, rev: number, edited?: {text: string}|null,
 * }} Turn
 */

/** @param {number} [rev] that of the world this one replaces: what is drawn must never look newer than it is */
export function newWorld(rev = 0) {
  return {
    seq: 0,
    rev,
    session: null,
    /** @type {Map<number, Turn>} */ turns: new Map(),
    /** @type {number|null} */ running: null,
    /** @type {number[]} */ redo: [],
    /** all variants of a turn that was taken again, by each of them @type {Map<number, number[]>} */ variants: new Map(),
    /** what a redo brings back once a variant counts again @type {Map<number, number[]>} */ futures: new Map(),
    /** @type {Map<string, Call>} */ calls: new Map(),
    plans: new Map(),
    assets: new Map(),
    skills: new Map(),
    permissions: new Set(),
    /** turns that have names, by name @type {Map<string, number>} */ checkpoints: new Map(),
    initial: {},
    state: {},
    /** patches of calls that have not committed, by sequence number */ pending: new Map(),
    stateRev: rev,
    assetsRev: rev,
    sessionRev: rev,
    memoryRev: rev,
    /** How often its author has saved the story meanwhile. */ storySaved: 0,
    /** a turn that was left out has been taken back or brought back: this world is to be asked for again */ stale: false,
  };
}

/** @typedef {ReturnType<typeof newWorld>} World */

/** The turns that count, in order. @param {World} world @returns {Turn[]} */
export function activeTurns(world) {
  return [...world.turns.values()].filter((turn) => !turn.undone);
}

/** @param {World} world @returns {Turn|null} */
export function lastTurn(world) {
  return activeTurns(world).findLast((turn) => turn.turn > 0 || turn.items.length) ?? null;
}

/** What stands in a turn: where its text was edited, that stands in the place of the narration. @param {Turn} turn @returns {Item[]} */
export function shownItems({ items, edited }) {
  const narration = edited && items.find((item) => item.kind === "narration");
  if (!narration) return items;
  return items.flatMap((item) => (item === narration ? [{ ...item, ...edited }] : item.kind === "narration" ? [] : [item]));
}

/** The text of a turn, as it was written. @param {Turn} turn */
export function textOf(turn) {
  return shownItems(turn).filter(({ kind }) => kind === "narration").map(({ text }) => text).join("\n\n");
}

/** What a turn is called, by whoever plays. @param {World} world @param {Turn} turn @returns {string[]} */
export function namesOf(world, turn) {
  return [...world.checkpoints].filter(([, marked]) => marked === turn.turn).map(([name]) => name);
}

/** A story says that it is over by `ending` in its state. @param {World} world @returns {string} its title, or "" */
export function endingOf(world) {
  const ending = lastTurn(world)?.outcome ? world.state.ending : null;
  return typeof ending?.id === "string" ? String(ending.title ?? ending.id) : "";
}

/** The turn that brought the story to its end, if it is one of those here. @param {World} world @returns {Turn|null} */
export function endingTurn(world) {
  return activeTurns(world).find((turn) => turn.after?.ending && !turn.before?.ending) ?? null;
}

/** What the state would be if every running call succeeded. */
export function provisionalState(world) {
  let state = world.state;
  for (const { patch } of world.pending.values()) state = merge(state, patch);
  return state;
}

/** The questions of a turn that nobody has answered yet. */
export function openQuestions(turn) {
  return turn.outcome === null ? turn.items.filter((item) => item.kind === "approval" && !item.answer) : [];
}
