/**
 * The fold: records of the journal in, the world this page shows out.
 *
 * A live turn, a reload, a replay and a second viewer all take this path, so nothing else in the page may invent
 * state of the game. Each thing carries `rev`, the number of the last change that touched it; a view redraws
 * what has a newer `rev` than it has drawn.
 */
import { merge } from "./merge.js";
import { activeTurns, openQuestions } from "./world.js";
import { t } from "./words.js";

/** Notices about the files of a story that is being written; those that come first on a save. */
const STORY_NEWS = new Set(["STORY_SAVED", "STORY_MISTAKE"]);
const STORY_NOTICES = new Set([...STORY_NEWS, "STORY_WARNING"]);

/** @param {import("./world.js").World} world @param {import("./world.js").JournalRecord} record */
export function fold(world, record) {
  if (record.seq) {
    if (record.seq <= world.seq) return;
    world.seq = record.seq;
  }
  world.rev += 1;
  handlers[record.event.type]?.(world, record.event, record);
}

// --- turns ----------------------------------------------------------------------------------------------

function newTurn(world, number, prompt = "", origin = "opening", ts = 0) {
  const turn = {
    turn: number, prompt, origin, ts, items: [], choices: [], narrator: "", passedOver: {}, plans: [], calls: [],
    asked: [], recalled: [], refusals: [], patches: [], before: world.state, after: world.state, outcome: null, undone: false, rev: world.rev,
  };
  world.turns.delete(number);
  world.turns.set(number, turn);
  return turn;
}

function turnOf(world, record) {
  const number = record.turn ?? world.running ?? [...world.turns.keys()].at(-1) ?? 0;
  const turn = world.turns.get(number) ?? newTurn(world, number, "", "opening", record.ts);
  turn.rev = world.rev;
  return turn;
}

function addItem(world, record, item) {
  const turn = turnOf(world, record);
  const at = turn.items.findIndex((other) => other.id === item.id);
  if (at < 0) turn.items.push({ ...item, rev: world.rev });
  else turn.items[at] = { ...turn.items[at], ...item, rev: world.rev };
}

/** What a narration looks like, as the server has rendered it: `plain` when it has not, or not all of it is here. */
function blocksOf({ prose }, shown = []) {
  if (!prose || (prose.kept ?? 0) > shown.length) return { blocks: shown, plain: true };
  return { blocks: [...shown.slice(0, prose.kept ?? 0), ...prose.blocks], plain: false };
}

/** The whole state again from what committed in the turns that count. */
function refold(world) {
  world.state = world.initial;
  for (const turn of activeTurns(world)) {
    turn.before = world.state;
    for (const patch of turn.patches) world.state = merge(world.state, patch);
    turn.after = world.state;
  }
  world.stateRev = world.rev;
}

// --- calls ----------------------------------------------------------------------------------------------

function callOf(world, id, record) {
  let call = world.calls.get(id);
  if (!call) {
    call = {
      id, tool: id, toolId: null, plan: null, parent: null, turn: turnOf(world, record).turn, status: "running",
      started: record.ts, ended: null, attempt: 0, attempts: [], input: {}, log: [], progress: null, errors: [],
      summary: "", finished: null, announced: new Map(), rev: 0,
    };
    world.calls.set(id, call);
    turnOf(world, record).calls.push(id);
  }
  call.rev = world.rev;
  const turn = world.turns.get(call.turn);
  if (turn) turn.rev = world.rev;
  return call;
}

/** 002: every failure path restores. A failed call keeps its assets and what it asked to be shown; only its patches go. */
function dropPatches(world, id) {
  const gone = new Set([id]);
  for (const call of world.calls.values()) if (gone.has(call.parent)) gone.add(call.id);
  for (const [seq, pending] of world.pending) if (gone.has(pending.call)) world.pending.delete(seq);
  world.stateRev = world.rev;
  return gone;
}

/** Another attempt follows: all that the failed one showed is taken back. */
function discard(world, id) {
  const gone = dropPatches(world, id);
  for (const [key, asset] of world.assets) if (gone.has(asset.call)) world.assets.delete(key);
  const turn = world.turns.get(world.calls.get(id)?.turn);
  if (turn) {
    turn.items = turn.items.filter((item) => item.kind === "failure" || !gone.has(item.call));
    if (gone.has(turn.choicesOf)) turn.choices = [];
  }
  world.assetsRev = world.rev;
}

function closeAttempt(call, ts, outcome, error) {
  const attempt = call.attempts.at(-1);
  if (attempt && attempt.ended === null) Object.assign(attempt, { ended: ts, outcome, error });
}

const emitted = {
  log(world, call, event, record) {
    const progress = event.fields?.progress;
    if (typeof progress === "number") call.progress = Math.min(1, Math.max(0, progress));
    for (const message of event.message.split("\n")) {
      call.log.push({ level: event.level, message, fields: event.fields, ts: record.ts });
    }
  },
  state_patch(world, call, event, record) {
    world.pending.set(record.seq, { call: call.id, patch: event.patch, turn: call.turn });
    world.stateRev = world.rev;
  },
  ui_event(world, call, event, record) {
    const choices = event.payload?.choices;
    if (event.event === "narrative_choice" && Array.isArray(choices)) {
      const turn = turnOf(world, record);
      turn.choices = [...new Set([...turn.choices, ...choices.map(String)])];
      turn.choicesOf = call.id;
      return;
    }
    addItem(world, record, { kind: "ui", id: `ui-${record.seq}`, call: call.id, event: event.event, payload: event.payload });
  },
  error(world, call, event, record) {
    call.errors.push(event);
    call.log.push({ level: "error", message: `${event.errorCode}: ${event.errorMessage}`, fields: event.details, ts: record.ts });
  },
  done(world, call, event) {
    call.summary = event.summary ?? "";
  },
  asset(world, call, event) {
    call.announced.set(event.assetId, event); // shown once it is stored
  },
};

// --- what each event does -------------------------------------------------------------------------------

const handlers = {
  session_started(world, event) {
    world.session = event;
    world.sessionRev = world.rev;
    if (event.parentSession && world.turns.size) return; // a branch goes on from the past it shares
    world.initial = world.state = event.state ?? {};
    world.permissions = new Set(event.permissions ?? []);
    world.stateRev = world.rev;
  },
  turn_started(world, event, record) {
    const known = world.turns.get(event.turn);
    world.running = event.turn;
    if (event.origin === "retry" && world.redo.length) addVariant(world, event.turn);
    world.redo = [];
    world.sessionRev = world.rev;
    if (known && !known.undone && known.outcome === null && known.prompt) return; // resumed after a crash
    newTurn(world, event.turn, event.prompt, event.origin ?? "player", record.ts);
  },
  narrator_chosen(world, event, record) {
    const turn = turnOf(world, record);
    turn.narrator = event.narrator;
    Object.assign(turn.passedOver, event.passedOver);
  },
  model_asked(world, event, record) {
    turnOf(world, record).asked.push(event);
  },
  memories_recalled(world, event, record) {
    turnOf(world, record).recalled = event.memories;
  },
  narration_delta(world, event, record) {
    const id = `narration-${event.attempt ?? 1}`;
    const turn = turnOf(world, record);
    if (event.anew) turn.items = turn.items.filter((item) => item.id !== id); // another one speaks
    if (!event.text) return;
    const old = turn.items.find((item) => item.id === id);
    addItem(world, record, { kind: "narration", id, text: (old?.text ?? "") + event.text, ...blocksOf(record, old?.blocks), final: false });
  },
  narration(world, event, record) {
    const turn = turnOf(world, record);
    const id = `narration-${event.attempt ?? 1}`;
    turn.items = turn.items.filter((item) => item.kind !== "narration" || item.final || item.id === id);
    if (event.narrator) turn.narrator = event.narrator;
    addItem(world, record, { kind: "narration", id, text: event.text, ...blocksOf(record), final: true });
  },
  narration_edited(world, event, record) {
    const turn = world.turns.get(event.turn);
    if (!turn) return;
    turn.edited = typeof event.text === "string" ? { text: event.text, ...blocksOf(record), rev: world.rev } : null;
    turn.rev = world.rev;
  },
  plan_made(world, event, record) {
    const id = event.plan.requestId;
    const turn = turnOf(world, record);
    world.plans.set(id, {
      id, plan: event.plan, attempt: event.attempt, narrator: event.narrator ?? "", turn: turn.turn,
      status: "running", failed: [], duration: 0, started: record.ts, rev: world.rev,
    });
    if (!turn.plans.includes(id)) turn.plans.push(id);
  },
  plan_refused(world, event, record) {
    turnOf(world, record).refusals.push(event);
  },
  call_started(world, event, record) {
    const call = callOf(world, event.call, record);
    closeAttempt(call, record.ts, "failed");
    Object.assign(call, {
      tool: event.tool, toolId: event.toolId ?? null, plan: event.plan ?? null, parent: event.parent ?? null,
      input: event.input ?? {}, attempt: event.attempt ?? 1, status: "running", ended: null, progress: null,
    });
    call.attempts.push({ attempt: call.attempt, started: record.ts, ended: null, outcome: "running" });
  },
  approval_requested(world, event, record) {
    addItem(world, record, { ...event, kind: "approval", id: `approval ${event.id}`, question: event.id, answer: null });
  },
  approval_given(world, event, record) {
    if (!openQuestions(turnOf(world, record)).some((item) => item.question === event.id)) return;
    addItem(world, record, { id: `approval ${event.id}`, answer: event });
  },
  call_emitted(world, event, record) {
    emitted[event.event.type]?.(world, callOf(world, event.call, record), event.event, record);
  },
  asset_stored(world, event, record) {
    const key = `${event.call}/${event.assetId}`;
    const asset = { ...event, key, turn: turnOf(world, record).turn, ts: record.ts };
    world.assets.set(key, asset);
    world.assetsRev = world.rev;
    addItem(world, record, { kind: "asset", id: `asset-${key}`, call: event.call, asset });
  },
  asset_denied(world, event, record) {
    const call = callOf(world, event.call, record);
    call.log.push({ level: "warn", message: t("log.asset_refused", { asset: event.assetId, reason: event.reason }), ts: record.ts });
    const { kind: assetKind = "", mediaType = "", metadata = null } = call.announced.get(event.assetId) ?? {};
    addItem(world, record, { kind: "denied", id: `denied-${record.seq}`, call: event.call, assetId: event.assetId, assetKind, mediaType, metadata, reason: event.reason });
  },
  call_retrying(world, event, record) {
    const call = callOf(world, event.call, record);
    closeAttempt(call, record.ts, "failed", event.error);
    call.status = "retrying";
    call.log.push({
      level: "warn", ts: record.ts,
      message: t("log.attempt_failed", { attempt: event.attempt, error: `${event.errorCode}: ${event.error}`, delay: event.delay }),
    });
    discard(world, event.call);
  },
  call_finished(world, event, record) {
    const call = callOf(world, event.call, record);
    call.tool = event.tool;
    call.toolId ??= event.toolId ?? null;
    call.plan ??= planOf(world, event); // a call that was skipped never started
    call.status = event.state;
    call.ended = record.ts;
    call.attempt = event.attempts ?? call.attempt;
    call.finished = event;
    if (event.ok) call.progress = call.progress === null ? null : 1;
    closeAttempt(call, record.ts, event.state, event.error);
    if (event.ok) return;
    dropPatches(world, event.call);
    if (event.state === "skipped" || call.parent) return;
    const refused = event.errorCode === "REFUSED" && event.errorSource !== "tool"; // the card of the question says so
    if (refused && turnOf(world, record).items.some((item) => item.kind === "approval" && item.call === event.call)) return;
    addItem(world, record, { kind: "failure", id: `failure-${event.call}`, call: event.call });
  },
  committed(world, event, record) {
    const turn = turnOf(world, record);
    for (const change of event.changes) {
      const patch = typeof change === "number" ? world.pending.get(change)?.patch : change.patch;
      if (typeof change === "number") world.pending.delete(change);
      else if (change.change === "permission") changePermission(world, change);
      else if (change.change === "memory") world.memoryRev = world.rev;
      if (!patch) continue;
      turn.patches.push(patch);
      world.state = merge(world.state, patch);
    }
    turn.after = world.state;
    world.stateRev = world.rev;
  },
  plan_finished(world, event, record) {
    const plan = world.plans.get(event.plan);
    turnOf(world, record);
    if (plan) {
      const { success, failed = [], duration = 0 } = event;
      Object.assign(plan, { status: success ? "completed" : "failed", failed, duration, rev: world.rev });
    }
  },
  skill_health(world, event) {
    world.skills.set(event.skill, event);
    world.sessionRev = world.rev;
  },
  choices(world, event, record) {
    Object.assign(turnOf(world, record), { choices: event.choices, choicesOf: null });
  },
  notice(world, event, record) {
    if (STORY_NEWS.has(event.code)) outdate(world);
    else if (event.level === "info") return; // for the trace, as at the terminal
    if (turnOf(world, record).items.some((item) => item.kind === "denied" && item.reason === event.message)) return; // it has its card
    addItem(world, record, { kind: "notice", id: `notice-${record.seq}`, ...event });
  },
  notification(world, event, record) {
    addItem(world, record, { kind: "ui", id: `ui-${record.seq}`, event: event.event, payload: event.payload });
  },
  turn_committed(world, event, record) {
    const turn = turnOf(world, record);
    for (const item of openQuestions(turn)) addItem(world, record, { id: item.id, answer: { decision: "cancelled" } });
    turn.outcome = event.outcome ?? "completed";
    if (world.running === event.turn) world.running = null;
    for (const [seq, pending] of world.pending) if (pending.turn === turn.turn) world.pending.delete(seq);
    for (const id of turn.calls) endOpenCall(world, world.calls.get(id), record);
    world.sessionRev = world.stateRev = world.rev;
  },
  checkpoint(world, event) {
    world.checkpoints.delete(event.name); // the newest name last
    world.checkpoints.set(event.name, event.turn);
  },
  turn_undone(world, event) {
    markUndone(world, event.turn, true);
    world.redo.push(event.turn);
  },
  turn_redone(world, event) {
    markUndone(world, event.turn, false);
    if (!world.redo.includes(event.turn)) showInstead(world, event.turn);
    else world.redo = world.redo.filter((turn) => turn !== event.turn);
  },
};

/** A turn is taken again: it is a variant of the one undone last. */
function addVariant(world, turn) {
  const earlier = world.redo.at(-1);
  const all = [...(world.variants.get(earlier) ?? [earlier]), turn];
  for (const one of all) world.variants.set(one, all);
  world.futures.set(earlier, world.redo.slice(0, -1));
}

/** A turn counts again in the place of its variant, which was undone just before. */
function showInstead(world, turn) {
  const hidden = world.redo.pop();
  world.futures.set(hidden, world.redo);
  world.redo = world.futures.get(turn) ?? [];
}

/** A call of a plan is named after both. */
function planOf(world, { call, toolId }) {
  const plan = toolId ? call.slice(0, -toolId.length - 1) : "";
  return world.plans.has(plan) ? plan : null;
}

/** The story's files were saved: what was said of them before is no longer so. */
function outdate(world) {
  world.storySaved += 1;
  for (const turn of world.turns.values()) {
    const left = turn.items.filter((item) => item.kind !== "notice" || !STORY_NOTICES.has(item.code));
    if (left.length < turn.items.length) Object.assign(turn, { items: left, rev: world.rev });
  }
}

function markUndone(world, number, undone) {
  const turn = world.turns.get(number);
  if (turn) Object.assign(turn, { undone, rev: world.rev });
  else world.stale = true;
  if (world.running === number) world.running = null;
  for (const [seq, pending] of world.pending) if (pending.turn === number) world.pending.delete(seq);
  world.assetsRev = world.sessionRev = world.rev;
  refold(world);
}

/** A cancelled turn leaves calls that never finished; they must not look as if they still ran. */
function endOpenCall(world, call, record) {
  if (!call || call.ended !== null) return;
  closeAttempt(call, record.ts, "failed", t("log.stopped"));
  Object.assign(call, { status: "failed", ended: record.ts, rev: world.rev });
}

function changePermission(world, change) {
  if (change.granted) world.permissions.add(change.permission);
  else world.permissions.delete(change.permission);
  world.sessionRev = world.rev;
}
