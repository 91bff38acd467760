/** The story: turns with their narration, pictures, cards, notices and, at the end, the choices. */
import { h, Keyed, setAttribute, setText } from "./dom.js";
import { api } from "./api.js";
import { attempt, openMenu } from "./dialogs.js";
import { activeTurns, endingOf } from "./fold.js";
import { icon } from "./icons.js";
import { kindOf, media, openLightbox, titleOf } from "./media.js";
import { calm } from "./prefs.js";
import { showProse } from "./prose.js";

const NEAR = 56;
const MARGIN_ABOVE_TURN = 24;
/** Characters from which a text can carry an initial over two lines. */
const LONG = 160;
const MURMUR = 70;

export class StoryView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.page = h("div", { class: "page" });
    this.ending = h("section", { class: "ending", "aria-label": "Ending", hidden: true }, icon("spark"), h("p", { class: "ending-title", dir: "auto" }),
      h("p", { class: "quiet", text: "This is an ending. Undo goes back to before it, Branch keeps it and tries another way." }),
      h("div", { class: "ending-actions" }, h("button", { class: "button tonal", text: "Begin again", on: { click: () => this.#beginAgain() } }),
        h("a", { class: "button text", href: "/", text: "To the library" })));
    this.earlier = h("button", { class: "button text earlier", hidden: true, on: { click: () => this.#showEarlier() } });
    this.scroller = h("div", { class: "story", role: "log", "aria-label": "Story", tabindex: "0" }, this.earlier, this.page, this.ending);
    this.jump = h("button", { class: "fab", hidden: true, "aria-label": "Go to the newest text", on: { click: () => this.follow(true) } }, icon("down"));
    this.node = h("div", { class: "story-frame" }, this.scroller, this.jump);
    this.turns = new Keyed(this.page);
    this.following = true;
    this.lastTop = this.lastHeight = 0;
    this.dismissed = new Set();
    this.scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.following && this.follow()).observe(this.page);
    document.addEventListener("keydown", (event) => this.#numberKey(event));
  }

  update() {
    const { world, sending } = this.game;
    if (sending && !this.sent) this.following = true; // who acts wants to see what comes of it
    this.sent = sending;
    const shown = activeTurns(world).filter((turn) => turn.turn > 0 || turn.items.length);
    const last = shown.at(-1);
    const blank = !shown.length;
    if (blank) this.#showEmpty();
    else {
      this.empty?.remove();
      this.empty = null;
      this.turns.show(shown, (turn) => `${turn.turn} ${turn.ts}`, (turn) => new TurnPart(this, turn));
    }
    this.#showEnding();
    this.#offerEarlier();
    for (const part of blank ? [] : this.turns.parts.values()) part.setLast(part.turn === last, this.game.busy || !this.ending.hidden);
    if (this.following) this.follow();
  }

  /** One may still go back, or simply go on. */
  #showEnding() {
    const title = endingOf(this.game.world);
    this.ending.hidden = !title;
    setText(this.ending.children[1], title);
  }

  async #beginAgain() {
    const made = await attempt(() => api.create(this.game.world.session.story));
    if (made) location.assign(`/play/${encodeURIComponent(made.id)}#narrative`);
  }

  #offerEarlier() {
    const { earlier } = this.game;
    this.earlier.hidden = !earlier;
    setText(this.earlier, earlier === 1 ? "Show 1 earlier turn" : `Show earlier turns (${earlier.toLocaleString("en")})`);
    if (this.heightBefore && earlier !== this.earlierBefore) {
      this.scroller.scrollTop += this.scroller.scrollHeight - this.heightBefore; // what is being read stays where it is
      this.heightBefore = 0;
    }
  }

  #showEarlier() {
    this.following = false;
    this.heightBefore = this.scroller.scrollHeight;
    this.earlierBefore = this.game.earlier;
    this.game.showEarlier();
  }

  #showEmpty() {
    if (this.empty) return;
    this.turns.show([], (turn) => turn, () => null);
    this.empty = h("div", { class: "empty" }, icon("book"),
      h("h2", { text: "An unwritten page" }),
      h("p", { text: "Say what you do, in your own words, and the story answers. Nothing here can be lost: every turn can be undone." }));
    this.page.append(this.empty);
  }

  /** As far down as can be without pushing the beginning of the current turn out of sight: one reads from there. */
  #target() {
    const bottom = this.scroller.scrollHeight - this.scroller.clientHeight;
    const turn = this.page.lastElementChild;
    const top = turn?.classList.contains("turn") ? turn.offsetTop - MARGIN_ABOVE_TURN : bottom;
    return Math.max(0, Math.min(bottom, top));
  }

  follow(all = false) {
    this.following = true;
    const bottom = this.scroller.scrollHeight - this.scroller.clientHeight;
    const top = all ? bottom : this.#target();
    if (Math.abs(this.scroller.scrollTop - top) > 1 && (all || this.scroller.scrollTop < top)) {
      this.scroller.scrollTo({ top, behavior: all && !calm() ? "smooth" : "instant" });
    }
    this.#showJump();
  }

  /** Only a reader moves up; pictures that load and turns that go move the text as well, and mean nothing. */
  #scrolled() {
    const { scrollTop, scrollHeight } = this.scroller;
    if (scrollTop >= this.#target() - NEAR) this.following = true;
    else if (scrollTop < this.lastTop && scrollHeight >= this.lastHeight) this.following = false;
    [this.lastTop, this.lastHeight] = [scrollTop, scrollHeight];
    this.#showJump();
  }

  #showJump() {
    const below = this.scroller.scrollHeight - this.scroller.clientHeight - this.scroller.scrollTop;
    this.jump.hidden = below < NEAR;
  }

  #numberKey(event) {
    const typing = event.target.closest?.("textarea, input, select, dialog, [role=menu], [role=tree]");
    const digit = /^Digit([1-9])$/.exec(event.code)?.[1] ?? (/^[1-9]$/.test(event.key) ? event.key : null);
    if (!digit || event.ctrlKey || event.metaKey || (typing && !event.altKey) || !this.node.checkVisibility()) return;
    const button = this.page.querySelectorAll(".choice")[digit - 1];
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  }
}

/** One turn on the page. Its parts are made once and only changed. */
class TurnPart {
  constructor(view, turn) {
    this.view = view;
    this.turn = turn;
    this.drawn = -1;
    this.body = h("div", { class: "turn-body" });
    this.items = new Keyed(this.body);
    this.pulse = h("div", { class: "pulse", "aria-hidden": "true" }, h("i"), h("i"), h("i"), h("span"));
    this.ending = h("p", { class: "turn-ending quiet", hidden: true });
    this.choices = h("div", { class: "choices", role: "group", "aria-label": "Choices", hidden: true });
    this.teller = h("span", { class: "teller quiet" });
    this.node = h("section", { class: "turn", "aria-label": turn.turn ? `Turn ${turn.turn}` : "Prologue" },
      this.#head(), this.body, this.pulse, this.ending, this.choices);
  }

  #head() {
    const { turn } = this;
    const { game } = this.view;
    const more = h("button", { class: "icon-button more", "aria-label": `Actions for turn ${turn.turn}`, "aria-haspopup": "menu", "aria-expanded": "false" }, icon("more"));
    more.addEventListener("click", () => openMenu(more, [
      { label: "Edit and retry…", icon: "edit", run: () => game.editAndRetry(this.turn) },
      { label: "Retry from here", icon: "retry", run: () => game.retryFrom(this.turn) },
      { label: "Undo to before this", icon: "undo", run: () => game.undoTo(this.turn) },
      { label: "Branch from here", icon: "branch", run: () => game.branch(this.turn) },
    ]));
    const said = turn.prompt && turn.origin !== "opening";
    return h("header", { class: said ? "turn-head" : "turn-head opening" },
      said ? h("p", { class: "prompt", dir: "auto", text: turn.prompt }) : h("span"), this.teller, turn.turn ? more : "");
  }

  #showTeller({ narrator, passedOver, turn }) {
    setText(this.teller, narrator && turn ? `told by ${narrator}` : "");
    const why = Object.entries(passedOver).map(([name, reason]) => `${name}: ${reason}`).join("\n");
    setAttribute(this.teller, "title", why ? `Passed over:\n${why}` : null);
  }

  update(turn) {
    if (this.drawn === turn.rev) return;
    this.drawn = turn.rev;
    this.turn = turn; // another object after a snapshot
    const items = turn.items.filter((item) => !this.view.dismissed.has(item.id));
    this.items.show(items, (item) => item.id, (item) => this.#make(item));
    const narrating = turn.outcome === null && items.some((item) => item.kind === "narration" && !item.final);
    this.node.classList.toggle("narrating", narrating);
    this.#showTeller(turn);
    this.#showPulse(turn);
    const ending = { cancelled: "You stopped this turn. What had not finished was taken back.", fallback: "The narrator found no plan that worked; this is the plain telling." }[turn.outcome];
    this.ending.hidden = !ending;
    setText(this.ending, ending ?? "");
  }

  #showPulse(turn) {
    const running = turn.outcome === null && this.view.game.world.running === turn.turn;
    this.pulse.hidden = !running;
    setAttribute(this.node, "aria-busy", running ? "true" : null);
    const calls = turn.calls.map((id) => this.view.game.world.calls.get(id)).filter((call) => call && call.ended === null);
    setText(this.pulse.lastElementChild, calls.slice(0, 3).map(activity).join("   "));
  }

  /** What a turn offered is over with the story, and while the next one is told. */
  setLast(last, over) {
    const { turn, choices } = this;
    const show = last && turn.outcome !== null && !over;
    choices.hidden = !show || !turn.choices.length;
    this.node.classList.toggle("last", last);
    const offered = choices.hidden ? [] : turn.choices;
    if (this.offered?.join("\n") === offered.join("\n")) return;
    this.offered = offered;
    choices.replaceChildren(...offered.map((text, index) =>
      h("button", { class: "choice", on: { click: () => this.view.game.send(text, "choice") } },
        h("span", { class: "key", "aria-hidden": "true", text: index < 9 ? String(index + 1) : "·" }), h("span", { class: "choice-text", dir: "auto", text }), icon("chevron"))));
  }

  #make(item) {
    switch (item.kind) {
      case "narration": return narration();
      case "asset": return { node: assetFigure(item.asset) };
      case "failure": return this.#failure(item);
      case "notice": return { node: this.#notice(item) };
      default: return { node: uiCard(item) };
    }
  }

  #dismissButton(item) {
    const dismiss = () => {
      this.view.dismissed.add(item.id);
      this.drawn = -1;
      this.update(this.turn);
    };
    return h("button", { class: "button text", text: "Dismiss", on: { click: dismiss } });
  }

  #notice(item) {
    return h("div", { class: `notice ${item.level}` }, icon(item.level === "info" ? "info" : "warn"),
      h("div", {}, h("p", { dir: "auto", text: item.message }),
        ...(item.suggestions ?? []).map((text) => h("p", { class: "quiet", dir: "auto", text })),
        h("div", { class: "notice-actions" }, this.#dismissButton(item))));
  }

  /** A failed skill: what happened, why, what can be done. */
  #failure(item) {
    const { game } = this.view;
    const { finished, tool } = game.world.calls.get(item.call);
    const suggestions = finished.suggestions ?? [];
    const details = h("details", {}, h("summary", { text: "Details" }),
      h("p", { class: "mono", text: `${finished.errorCode ?? finished.state}: ${finished.error ?? finished.message}`, dir: "auto" }),
      ...suggestions.map((text) => h("p", { text, dir: "auto" })),
      h("a", { href: `#tools/${encodeURIComponent(item.call)}`, text: "What it did, step by step" }));
    const again = h("button", { class: "button text", text: "Try the turn again", on: { click: () => game.retryFrom(this.turn) } });
    const node = h("div", { class: "notice error" }, icon("warn"),
      h("div", {}, h("p", {}, h("strong", { text: tool, dir: "auto" }), finished.state === "timeout" ? " took too long and was stopped." : " did not succeed. The story goes on without it."),
        details, h("div", { class: "notice-actions" }, again, this.#dismissButton(item))));
    return { node };
  }
}

/** What a running tool is doing, in its own words. */
function activity({ tool, progress, log }) {
  const said = log.at(-1)?.message.slice(0, MURMUR) ?? "";
  return [tool, progress === null ? "" : `${Math.round(100 * progress)} %`, said].filter(Boolean).join(" · ");
}

function narration() {
  const node = h("div", { class: "narration" });
  let shown = -1;
  return {
    node,
    update(item) {
      node.classList.toggle("streaming", !item.final);
      node.classList.toggle("long", item.text.length > LONG);
      if (item.rev !== shown) showProse(node, item);
      shown = item.rev;
    },
  };
}

function assetFigure(asset) {
  const caption = kindOf(asset) === "other" ? "" : h("figcaption", { dir: "auto", text: titleOf(asset) });
  return h("figure", { class: "story-asset" }, media(asset, openLightbox), caption);
}

/** 000 §4.4: an event this client does not know is shown, quietly, with its name and payload. */
function uiCard(item) {
  const payload = item.payload === undefined ? "no payload" : JSON.stringify(item.payload, null, 2);
  return h("div", { class: "ui-card" }, icon("spark"),
    h("details", {}, h("summary", {}, "The story asked for ", h("code", { text: item.event }), ", which this page does not show."),
      h("pre", { text: payload, tabindex: "0" })));
}
