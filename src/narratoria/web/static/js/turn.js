/** One turn on the page: what was said, the narration, pictures, cards, notices and, at its end, the choices. */
import { approvalCard } from "./approval.js";
import { canRead, isReading, readAloud, stopReading } from "./aloud.js";
import { openMenu } from "./dialogs.js";
import { duration, h, Keyed, money, setAttribute, setText } from "./dom.js";
import { namesOf, openQuestions, shownItems } from "./world.js";
import { icon } from "./icons.js";
import { facts, kindOf, media, openLightbox, titleOf } from "./media.js";
import { branch, editAndRetry, editText, keepText, nameMoment, redo, retry, returnTo, undo } from "./moves.js";
import { showProse } from "./prose.js";
import { memoryName, why } from "./recall.js";
import { Variants } from "./variants.js";
import { parts, said, t } from "./words.js";

/** Characters from which a text can carry an initial over two lines. */
const LONG = 160;
/** Characters from which what was said may not all be in sight, and can be scrolled. */
const LONG_PROMPT = 300;
const MURMUR = 70;
const SYMBOLS = { image: "image", audio: "sound", video: "film", other: "file" };
const MISSING = { image: t("turn.no_picture"), audio: t("turn.no_sound"), video: t("turn.no_film"), other: t("turn.no_file") };
/** Characters of a reason in the menu. */
const REASON = 240;
/** How a narrator tells, in the words the settings have for it. */
const TELLERS = { rules: t("teller.rules"), paraphrase: t("teller.paraphrase"), local: t("teller.local"), llm: t("teller.llm"), template: t("teller.template"), lore: t("teller.lore") };
export const manner = (narrator) => TELLERS[narrator] ?? t("teller.other", { narrator });
const OUTCOMES = {
  cancelled: t("turn.cancelled"),
  fallback: t("turn.fallback"),
};

/** Its parts are made once and only changed. */
export class TurnPart {
  /** @param {import("./story.js").StoryView} view @param {import("./world.js").Turn} turn */
  constructor(view, turn) {
    this.view = view;
    this.turn = turn;
    this.drawn = -1;
    this.body = h("div", { class: "turn-body" });
    this.items = new Keyed(this.body);
    this.pulse = h("div", { class: "pulse", "aria-hidden": "true" }, h("i"), h("i"), h("i"), h("span"));
    this.ending = h("p", { class: "turn-ending quiet", hidden: true });
    this.choices = h("div", { class: "choices", role: "group", "aria-label": t("turn.choices"), hidden: true });
    this.moments = h("div", { class: "moments", hidden: true });
    this.variants = new Variants(this);
    this.node = h("article", { class: "turn", tabindex: "-1", "aria-label": turn.turn ? t("turn.number", { turn: turn.turn }) : t("turn.prologue") },
      this.#head(), this.body, this.pulse, this.ending, this.moments, this.choices);
  }

  focus() {
    this.node.focus({ preventScroll: true });
  }

  #head() {
    const { turn } = this;
    const name = turn.turn ? t("turn.actions", { turn: turn.turn }) : t("turn.prologue_actions");
    const more = h("button", { class: "icon-button more", "aria-label": name, "aria-haspopup": "menu", "aria-expanded": "false" }, icon("more"));
    more.addEventListener("click", () => openMenu(more, this.#actions()));
    const said = turn.prompt && turn.origin !== "opening";
    return h("header", { class: said ? "turn-head" : "turn-head opening" }, this.variants.node,
      said ? h("p", { class: "prompt", dir: "auto", text: turn.prompt, tabindex: turn.prompt.length > LONG_PROMPT && "0" }) : h("span"), more);
  }

  read() {
    readAloud(this.body.querySelectorAll(".narration"));
  }

  /** While a turn runs, the server would only refuse to go back. */
  #actions() {
    const { turn, view: { game } } = this;
    const disabled = game.busy || game.moving;
    const actions = [
      { label: t("turn.edit_retry"), icon: "edit", disabled, run: () => editAndRetry(game, this.turn) },
      { label: t("turn.retry_here"), icon: "retry", disabled, run: () => retry(game, this.turn) },
      { label: t("turn.undo_to"), icon: "undo", disabled, run: () => undo(game, this.turn) },
    ];
    const fork = { label: t("turn.branch_here"), icon: "branch", disabled: turn.outcome === null && game.busy, run: () => branch(game, this.turn) };
    const last = this.node.classList.contains("last");
    // where height is scarce the composer has no room for it
    const again = last && game.world.redo.length ? [{ label: t("composer.redo"), icon: "redo", disabled, run: () => redo(game) }] : [];
    const name = last ? [{ label: t("turn.name_moment"), icon: "flag", disabled, run: () => nameMoment(game) }] : [];
    const reading = isReading() ? { label: t("turn.stop_aloud"), icon: "stop", run: stopReading } : { label: t("turn.aloud"), icon: "speak", run: () => this.read() };
    const told = turn.items.some(({ kind }) => kind === "narration") && turn.outcome !== null;
    const edit = told ? [{ label: t("turn.edit_text"), icon: "edit", disabled, run: () => editText(game, this.turn) }] : [];
    if (turn.edited) edit.push({ label: t("turn.own_text"), icon: "undo", disabled, run: () => keepText(game, this.turn, null) });
    return [...(turn.turn ? actions : []), ...again, ...edit, fork, ...name, ...(canRead() ? [reading] : []), ...this.#tellers()];
  }

  /** Who spoke, and why those before did not. Here alone: nothing of the machine stands in the story. */
  #tellers() {
    const { narrator, passedOver, turn, asked, recalled } = this.turn;
    if (!narrator || !turn) return [];
    const others = Object.entries(passedOver).filter(([name]) => name !== narrator);
    const remembered = recalled.map((one) => ({ label: t("turn.recalled", { name: memoryName(one), why: why(one) }), icon: "bookmark", run: () => { location.hash = `#memory/${encodeURIComponent(one.id)}`; } }));
    return [...remembered, { label: t("turn.told", { manner: manner(narrator) }), icon: "info" }, ...spent(asked).map((label) => ({ label, icon: "info" })),
      ...others.map(([name, reason]) => ({ label: t("turn.not_told", { manner: manner(name), reason: short(reason) }), icon: "info" }))];
  }

  update(turn) {
    if (this.drawn === turn.rev) return;
    this.drawn = turn.rev;
    this.turn = turn; // another object after a snapshot
    const items = shownItems(turn).filter((item) => !this.view.isDismissed(item) && !this.#stoppedByPlayer(item));
    this.items.show(items, (item) => item.id, (item) => this.#make(item));
    const narrating = turn.outcome === null && items.some((item) => item.kind === "narration" && !item.final);
    this.node.classList.toggle("narrating", narrating);
    this.#showPulse(turn);
    const ending = OUTCOMES[turn.outcome];
    this.ending.hidden = !ending;
    setText(this.ending, ending ?? "");
  }

  /** What ended because the player said so has not failed. Until the turn ends one cannot know who it was. */
  #stoppedByPlayer({ kind, call }) {
    if (kind !== "failure" || (this.turn.outcome !== null && this.turn.outcome !== "cancelled")) return false;
    const finished = this.view.game.world.calls.get(call)?.finished;
    return finished?.errorCode === "CANCELLED" && finished.errorSource !== "tool";
  }

  #showPulse(turn) {
    const { world } = this.view.game;
    const running = turn.outcome === null && world.running === turn.turn;
    this.pulse.hidden = !running || openQuestions(turn).length > 0; // the story waits, and nothing moves
    setAttribute(this.node, "aria-busy", running ? "true" : null);
    const calls = turn.calls.map((id) => world.calls.get(id)).filter((call) => call && call.ended === null);
    setText(this.pulse.lastElementChild, calls.slice(0, 3).map(activity).join("   "));
  }

  /** What a turn offered is over with the story, and while the next one is told. */
  setLast(last, busy, over) {
    const { turn, choices } = this;
    const show = last && turn.outcome !== null && !busy && !over;
    choices.hidden = !show || !turn.choices.length;
    this.node.classList.toggle("last", last);
    for (const button of this.body.querySelectorAll(".again")) button.disabled = busy;
    this.#showMoments(last);
    this.variants.update();
    const offered = choices.hidden ? [] : turn.choices;
    if (this.offered?.join("\n") === offered.join("\n")) return;
    this.offered = offered;
    choices.replaceChildren(...offered.map((text, index) => this.#choice(text, index)));
  }

  /** What this turn is called; where the story has gone on, a way back to it. */
  #showMoments(last) {
    const { game } = this.view;
    const names = namesOf(game.world, this.turn);
    const key = JSON.stringify([last, names]);
    if (this.named === key || (!this.named && !names.length)) return;
    this.named = key;
    this.moments.hidden = !names.length;
    this.moments.replaceChildren(...names.map((name) => {
      const label = [icon("flag"), h("span", { dir: "auto", text: name })];
      return last ? h("span", { class: "moment" }, ...label)
        : h("button", { class: "moment", "aria-label": t("turn.return_to", { name }), title: t("turn.return"), on: { click: () => returnTo(game, name) } }, ...label);
    }));
  }

  #choice(text, index) {
    // the button goes, and its focus to this turn (`settleFocus`), with the next one before it
    return h("button", { class: "choice", on: { click: () => this.view.game.send(text, "choice") } },
      h("span", { class: "key", "aria-hidden": "true", text: index < 9 ? String(index + 1) : "·" }), h("span", { class: "choice-text", dir: "auto", text }), icon("chevron"));
  }

  /** What one would not want to miss below the edge of the window. @returns {{name: string, node: Element}[]} */
  thingsToFind() {
    const found = [[t("turn.picture"), ".picture"], [t("turn.sound"), "audio"], [t("turn.film"), "video"]];
    return [...this.body.querySelectorAll(".story-asset")].flatMap((node) =>
      found.filter(([, selector]) => node.querySelector(selector)).map(([name]) => ({ name, node })));
  }

  // --- items --------------------------------------------------------------------------------------------

  #make(item) {
    switch (item.kind) {
      case "narration": return narration();
      case "asset": return { node: assetFigure(item.asset) };
      case "failure": return this.#failure(item);
      case "approval": return approvalCard(this.view.game, item);
      case "notice": return { node: this.#notice(item) };
      case "denied": return { node: deniedCard(item) };
      default: return { node: uiCard(item) };
    }
  }

  #dismissButton(item) {
    const dismiss = () => {
      this.view.dismiss(item.id);
      this.drawn = -1;
      this.update(this.turn);
      this.focus();
    };
    return h("button", { class: "button text", text: t("turn.dismiss"), on: { click: dismiss } });
  }

  #notice(item) {
    return h("div", { class: `notice ${item.level}` }, icon(NOTICES[item.level]?.symbol ?? "info"),
      h("div", {}, levelWord(item.level), h("p", { dir: "auto", text: said(item.message) }),
        ...(item.suggestions ?? []).map((text) => h("p", { class: "quiet", dir: "auto", text })),
        h("div", { class: "notice-actions" }, this.#dismissButton(item))));
  }

  /** A failed skill: what happened, why, what can be done. */
  #failure(item) {
    const { game } = this.view;
    const { finished, tool } = game.world.calls.get(item.call);
    const suggestions = finished.suggestions ?? [];
    const details = h("details", {}, h("summary", { text: t("turn.details") }),
      h("p", { class: "mono", text: `${finished.errorCode ?? finished.state}: ${finished.error ?? finished.message}`, dir: "auto" }),
      ...suggestions.map((text) => h("p", { text, dir: "auto" })),
      stepByStep(item));
    const again = h("button", { class: "button text again", text: t("turn.try_again"), on: { click: () => retry(game, this.turn) } });
    const what = h("strong", { dir: "auto" });
    const node = h("div", { class: "notice error" }, icon("error"),
      h("div", {}, levelWord("error"), h("p", {}, ...(finished.state === "timeout" ? parts("turn.too_long", { what }) : parts("turn.failed", { what }))),
        details, h("div", { class: "notice-actions" }, again, this.#dismissButton(item))));
    const update = () => {
      const { title, sentence } = game.toolWords(tool);
      setText(what, title || (sentence ? `“${sentence}”` : tool));
    };
    return { node, update };
  }
}

/** What a notice is, told by a sign, and by a word to who cannot see it: colours are not for everybody. */
const NOTICES = { warn: { symbol: "warn", word: t("turn.warning") }, error: { symbol: "error", word: t("turn.error") } };

function levelWord(level) {
  const word = NOTICES[level]?.word;
  return word ? h("span", { class: "visually-hidden", text: word }) : "";
}

function short(reason) {
  return reason.length > REASON ? `${reason.slice(0, REASON)}…` : reason;
}

/** What the models took that were asked for a turn: a line for each model. @param {any[]} asked */
function spent(asked) {
  const models = new Map();
  for (const { model = "", inputTokens = 0, outputTokens = 0, cost = 0, seconds = 0, estimated = false } of asked) {
    const sum = models.get(model) ?? { times: 0, read: 0, written: 0, cost: 0, seconds: 0, estimated: false };
    models.set(model, { times: sum.times + 1, read: sum.read + inputTokens, written: sum.written + outputTokens, cost: sum.cost + cost, seconds: sum.seconds + seconds, estimated: sum.estimated || estimated });
  }
  return [...models].map(([model, sum]) => [
    sum.estimated ? t("turn.about_tokens", words(model, sum)) : t("turn.tokens", words(model, sum)),
    sum.times > 1 ? t("turn.asked", { count: sum.times }) : "", duration(sum.seconds), sum.cost ? money(Number(sum.cost.toPrecision(2))) : "",
  ].filter(Boolean).join(" · "));
}

const words = (model, { read, written }) => ({ model: short(model) || t("turn.the_model"), read, written });

function stepByStep({ call }) {
  return h("a", { href: `#tools/${encodeURIComponent(call)}`, text: t("turn.steps") });
}

/** What a running tool says of itself; what it is stands in the status line, its id in the Tools view. */
function activity({ progress, log }) {
  const said = log.at(-1)?.message.slice(0, MURMUR) ?? "";
  return [progress === null ? "" : t("unit.percent", { value: Math.round(100 * progress) }), said].filter(Boolean).join(" · ");
}

function narration() {
  const node = h("div", { class: "narration" });
  let shown = null;
  return {
    node,
    update(item) {
      if (item.rev === shown) return;
      shown = item.rev;
      node.classList.toggle("streaming", !item.final);
      node.classList.toggle("long", item.text.length > LONG);
      showProse(node, item);
    },
  };
}

function assetFigure(asset) {
  const caption = kindOf(asset) === "other" ? "" : h("figcaption", { dir: "auto", text: titleOf(asset) });
  return h("figure", { class: "story-asset" }, media(asset, openLightbox), caption);
}

/** A file that was refused leaves a gap in the story; the gap says so. */
function deniedCard(item) {
  const kind = kindOf(item);
  const known = facts({ ...item, kind: item.assetKind }).map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value, dir: "auto" })));
  return h("div", { class: "placeholder denied" }, icon(SYMBOLS[kind]),
    h("div", {}, h("strong", { text: titleOf(item), dir: "auto" }), h("p", { text: MISSING[kind] }),
      h("dl", { class: "facts" }, ...known),
      h("details", {}, h("summary", { text: t("turn.why") }), h("p", { text: item.reason, dir: "auto" }), stepByStep(item))));
}

/** 000 §4.4: an event this client does not know is shown, quietly, with its name and payload. */
function uiCard(item) {
  const payload = item.payload === undefined ? t("turn.no_payload") : JSON.stringify(item.payload, null, 2);
  return h("div", { class: "ui-card" }, icon("spark"),
    h("details", {}, h("summary", {}, ...parts("turn.unknown", { event: h("code", { text: item.event }) })),
      h("pre", { text: payload, tabindex: "0" })));
}
