/**
 * Moving between turns: undo, redo, retry, branch. Nothing is lost without a question: what reached outside and cannot
 * be taken back is shown before anything is done, and who tries an older turn again is offered a branch.
 */
import { api } from "./api.js";
import { ask, askProse, askText, attempt, clearSnackbar, snackbar } from "./dialogs.js";
import { h } from "./dom.js";
import { activeTurns, lastTurn, textOf } from "./world.js";
import { t } from "./words.js";

/** @typedef {import("./game.js").Game} Game @typedef {import("./world.js").Turn} Turn */

/** Take back the newest turn, or `turn` and everything after it. @param {Game} game @param {Turn} [turn] */
export function undo(game, turn) {
  return game.move(async () => {
    const preview = await attempt(() => api.previewUndo(game.id, turn?.turn));
    if (!preview || !(await agreed(preview, t("moves.undo_anyway")))) return;
    const undone = await attempt(() => api.undo(game.id, turn?.turn));
    if (undone) tellUndone(game, undone, preview);
  });
}

function tellUndone(game, { turns, irreversible, compensated }, preview) {
  const count = turns.length;
  const failed = irreversible.filter((line) => !preview.irreversible.includes(line));
  const said = [t("moves.undone", { count })];
  if (failed.length) said.push(t("moves.not_undone", { what: failed.join("; ") }));
  if (compensated.length) said.push(t("moves.outside_undone", { count }));
  else if (count > 1) said.push(t("moves.one_by_one"));
  snackbar(said.join(" "), compensated.length ? null : { label: t("moves.bring_back", { count }), run: () => redo(game, turns[0]) });
}

/** Bring back the turn undone last, or all of them up to the turn `to`. @param {Game} game @param {number} [to] */
export function redo(game, to) {
  return game.move(async () => {
    const redone = await attempt(() => api.redo(game.id, to));
    if (!redone) return;
    const { turns } = redone;
    const count = turns.length;
    // not "Undo": a name belongs to one button
    snackbar(t("moves.back", { count }), { label: t("moves.take_back", { count }), run: () => undo(game, { turn: turns[0] }) });
  });
}

/** Give the newest turn a name to come back to. @param {Game} game */
export function nameMoment(game) {
  return game.move(async () => {
    const name = await askText(t("moves.name_moment"), t("moves.moment_label"), "", t("moves.keep_moment"), 1);
    const kept = name && (await attempt(() => api.checkpoint(game.id, name)));
    if (kept) snackbar(t("moves.moment_kept", { name: kept.name }));
  });
}

/** Take back everything after the moment of that name. @param {Game} game @param {string} name */
export function returnTo(game, name) {
  return game.move(async () => {
    const preview = await attempt(() => api.previewRestore(game.id, name));
    if (!preview || !(await agreed(preview, t("moves.return_anyway")))) return;
    const restored = await attempt(() => api.restore(game.id, name));
    if (restored?.turns.length) tellUndone(game, restored, preview);
  });
}

/** Take a turn again, with the same words or others. @param {Game} game @param {Turn|null} turn @param {string} [prompt] */
export function retry(game, turn = lastTurn(game.world), prompt = undefined) {
  if (!turn) return undefined;
  return game.move(async () => {
    const later = activeTurns(game.world).filter((one) => one.turn > turn.turn).length;
    const preview = await attempt(() => api.previewUndo(game.id, turn.turn));
    if (!preview) return;
    const how = later ? await askWhere(later, preview) : (await agreed(preview, t("moves.retry_anyway"))) && "here";
    if (how === "here" && (await game.begin(() => api.retry(game.id, turn.turn, prompt)))) tellIfSame(game, turn);
    else if (how === "branch") await branchAndRetry(game, turn, prompt ?? turn.prompt);
  });
}

/** Rules tell a thing in the same words again. That is said once the turn is over, with what would make it differ. */
function tellIfSame(game, before) {
  const told = textOf(before);
  const look = () => {
    if (game.busy) return;
    game.views = game.views.filter((view) => view !== look);
    const now = lastTurn(game.world);
    if (!now || now.outcome === "cancelled" || !told || textOf(now) !== told) return;
    snackbar(t("moves.same_words"), { label: t("moves.say_differently"), run: () => editAndRetry(game, now) });
  };
  game.views.push(look);
}

/** @param {Game} game @param {Turn} turn */
export async function editAndRetry(game, turn) {
  const prompt = await askText(t("moves.say_differently"), t("moves.your_words"), turn.prompt, t("moves.retry_with"));
  if (prompt) await retry(game, turn, prompt);
}

/** Change the words of the narrator. @param {Game} game @param {Turn} turn */
export async function editText(game, turn) {
  const text = await askProse(t("moves.edit_text"), t("moves.text_label"), textOf(turn), t("moves.keep_text"));
  if (text && text !== textOf(turn)) await keepText(game, turn, text);
}

/** Put another text in the place of a turn's; null stands for the narrator's own. @param {Game} game @param {Turn} turn @param {string|null} text */
export function keepText(game, turn, text) {
  const before = turn.edited?.text ?? null;
  return game.move(async () => {
    const kept = await attempt(() => api.editNarration(game.id, turn.turn, text).then(() => true));
    if (!kept) return;
    const back = () => keepText(game, { turn: turn.turn, edited: { text } }, before);
    snackbar(text === null ? t("moves.text_back") : t("moves.text_kept"), { label: t("moves.put_back"), run: back });
  });
}

/**
 * Show another variant of a turn; of an older one in a branch, where it is the newest.
 * @param {Game} game @param {Turn} turn @param {number} to the variant @returns {Promise<boolean>} whether it is shown here
 */
export async function showVariant(game, turn, to) {
  let shown = null;
  if (turn.turn !== lastTurn(game.world)?.turn) await branchTo(game, to);
  else {
    await game.move(async () => {
      const preview = await attempt(() => api.previewUndo(game.id));
      if (!preview || !(await agreed(preview, t("moves.change_anyway")))) return;
      shown = await attempt(() => api.showVariant(game.id, to));
      if (shown?.compensated.length) snackbar(t("moves.other_undone", { what: shown.compensated.join("; ") }));
    });
  }
  return Boolean(shown);
}

async function branchTo(game, to) {
  const answer = await ask(t("moves.gone_on"), [h("p", { text: t("moves.other_branch") })],
    [{ label: t("page.close"), value: "" }, { label: t("composer.branch"), value: "branch", kind: "filled", focus: true }]);
  if (answer) await openBranch(() => api.branch(game.id, { turn: to }));
}

/** @param {Game} game @param {Turn|null} turn the last one the branch shares */
export function branch(game, turn = lastTurn(game.world)) {
  return turn && openBranch(() => api.branch(game.id, { turn: turn.turn }));
}

/** @param {Game} game @param {Turn} turn the first one the branch does not share */
export function branchBefore(game, turn) {
  return openBranch(() => api.branch(game.id, { before: turn.turn }));
}

function branchAndRetry(game, turn, prompt) {
  return openBranch(async () => {
    const made = await api.branch(game.id, { before: turn.turn });
    if (prompt) await api.prompt(made.id, prompt, turn.origin === "choice" && prompt === turn.prompt ? "choice" : "player");
    else await api.goOn(made.id);
    return made;
  });
}

let branching = false;

async function openBranch(make) {
  if (branching) return; // a second click would make a second story
  branching = true;
  clearSnackbar();
  const made = await attempt(make);
  branching = false;
  if (made) location.assign(`/play/${encodeURIComponent(made.id)}#narrative`);
}

// --- questions ------------------------------------------------------------------------------------------

function staying({ irreversible }) {
  return h("ul", { class: "staying" }, ...irreversible.map((line) => h("li", { text: line, dir: "auto" })));
}

/** Whether to go on although something stays; asked only where something does. */
async function agreed(preview, action) {
  if (!preview.irreversible.length) return true;
  const answer = await ask(t("moves.not_all", { count: preview.turns.length }),
    [h("p", { text: t("moves.stays") }), staying(preview)],
    [{ label: t("moves.leave"), value: "", focus: true }, { label: action, value: "ok", kind: "filled" }]);
  return answer === "ok";
}

/** Where to try an older turn again. @returns {Promise<"here"|"branch"|"">} */
function askWhere(later, preview) {
  const content = [h("p", { text: t("moves.where") })];
  if (preview.irreversible.length) content.push(h("p", { text: t("moves.stays_anyway") }), staying(preview));
  return ask(t("moves.takes_back", { count: later }), content, [
    { label: t("page.close"), value: "" },
    { label: t("moves.retry_here"), value: "here", kind: "tonal" },
    { label: t("moves.branch_retry"), value: "branch", kind: "filled", focus: true },
  ]);
}
