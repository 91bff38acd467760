/** The story: its turns, its ending, and which part of it is in sight. */
import { api } from "./api.js";
import { attempt } from "./dialogs.js";
import { h, Keyed, setText } from "./dom.js";
import { offerRefuge, settleFocus, typesByHand } from "./focus.js";
import { activeTurns, endingOf, endingTurn } from "./world.js";
import { icon } from "./icons.js";
import { branchBefore } from "./moves.js";
import { calm, prefs } from "./prefs.js";
import { recall, remember } from "./tab.js";
import { TurnPart } from "./turn.js";
import { t } from "./words.js";

const NEAR = 56;
const MARGIN_ABOVE_TURN = 24;
/** A picture of which so much can be seen has been found. */
const HALF = 0.5;
const MOST_DISMISSED = 300;
/** From so many turns on, those out of sight are not laid out. */
const MANY = 200;

export class StoryView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.page = h("div", { class: "page" });
    this.otherWay = h("button", { class: "button tonal", text: t("story.another_way"), on: { click: () => branchBefore(game, endingTurn(game.world)) } });
    this.ending = h("section", { class: "ending", "aria-label": t("story.ending"), hidden: true }, icon("spark"), h("p", { class: "ending-title", dir: "auto" }),
      h("p", { class: "quiet", text: t("story.ending_note") }),
      h("div", { class: "ending-actions" }, this.otherWay, h("button", { class: "button text", text: t("story.begin_again"), on: { click: () => this.#beginAgain() } }),
        h("a", { class: "button text", href: "/", text: t("page.to_library") })));
    this.earlier = h("button", { class: "button text earlier", hidden: true, on: { click: () => this.#showEarlier() } });
    this.scroller = h("div", { class: "story", role: "log", "aria-label": t("story.story"), tabindex: "0" }, this.earlier, this.page, this.ending);
    this.below = h("span");
    /** It stands in the composer, where it covers nothing. */
    this.jump = h("button", { class: "jump", type: "button", hidden: true, on: { click: () => this.#goDown() } }, h("span", { class: "visually-hidden", text: t("story.go_down") }), this.below, icon("down"));
    this.node = h("div", { class: "story-frame" }, this.scroller);
    this.turns = new Keyed(this.page);
    this.following = true;
    this.#hold(true);
    this.lastTop = this.lastHeight = 0;
    /** Ids of notices; read when the first notice is shown. @type {Set<string>|null} */
    this.dismissed = null;
    this.scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    const sizes = new ResizeObserver(() => this.following && this.follow());
    sizes.observe(this.page);
    sizes.observe(this.scroller);
    document.addEventListener("keydown", (event) => this.#numberKey(event));
    // who typed goes on typing; who read finds the newest turn, with letters and digits at work and its choices next
    offerRefuge((from) => (from.closest(".composer") && typesByHand() ? document.getElementById("prompt") : this.newest?.node));
  }

  get #dismissedKey() {
    return `dismissed ${this.game.id}`;
  }

  /** @param {{id: string, kind: string}} item */
  isDismissed({ id, kind }) {
    if (kind !== "notice" && kind !== "failure") return false;
    this.dismissed ??= new Set(recall(this.#dismissedKey));
    return this.dismissed.has(id);
  }

  /** A notice that was put away stays away, in this tab. @param {string} id */
  dismiss(id) {
    this.dismissed.add(id);
    remember(this.#dismissedKey, [...this.dismissed].slice(-MOST_DISMISSED));
  }

  update() {
    const { world, sending, busy } = this.game;
    if (sending && !this.sent) this.following = true; // who acts wants to see what comes of it
    this.sent = sending;
    const shown = activeTurns(world).filter((turn) => turn.turn > 0 || turn.items.length);
    const last = shown.at(-1);
    const blank = !shown.length;
    if (blank) this.#showBlank();
    else {
      this.empty?.remove();
      this.empty = null;
      this.turns.show(shown, (turn) => `${turn.turn} ${turn.ts}`, (turn) => new TurnPart(this, turn));
    }
    this.#welcomeVariant();
    this.page.classList.toggle("many", shown.length > MANY);
    this.#showEnding();
    this.#offerEarlier();
    const parts = blank ? [] : [...this.turns.parts.values()];
    for (const part of parts) {
      part.setLast(part.turn === last, busy, !this.ending.hidden);
      if (!this.entered) part.node.classList.add("there");
    }
    this.#setNewest(parts.at(-1));
    this.#readNew();
    this.frame ||= requestAnimationFrame(() => this.#settle());
  }

  /** Another variant of the newest turn is on its way. @param {number|null} turn @param {number} step of the arrow that keeps the focus; 0 if none does */
  expectVariant(turn, step) {
    this.awaited = turn === null ? null : { turn, step };
  }

  /** It comes from the side it was asked for, and the arrow stays under the finger. */
  #welcomeVariant() {
    const part = this.awaited && [...this.turns.parts.values()].findLast(({ turn }) => turn.turn === this.awaited.turn);
    if (!part) return;
    const { step } = this.awaited;
    this.awaited = null;
    part.variants.update();
    if (step) part.variants.focus(step);
  }

  /** A turn that has ended while it was watched is read, where the reader wants that. */
  #readNew() {
    const turn = this.newest?.turn;
    const ended = turn && turn.outcome !== null ? turn.turn : null;
    if (this.entered && ended !== null && this.heard !== undefined && ended > this.heard && prefs().aloud) this.newest.read();
    if (turn && (ended !== null || this.heard === undefined)) this.heard = ended ?? turn.turn - 1;
  }

  /** What has to know where things are waits for the frame: asked before, the browser would lay out everything twice. */
  #settle() {
    this.frame = 0;
    if (this.following) this.follow();
    this.#enter();
    this.#arrive();
    settleFocus();
  }

  /** The keyboard begins where one writes, not at the top of the page. */
  #enter() {
    if (this.entered || !this.newest) return;
    this.entered = true;
    if (document.activeElement !== document.body || !this.node.checkVisibility()) return;
    // a touch screen would bring its keyboard up
    if (typesByHand()) document.getElementById("prompt").focus({ preventScroll: true });
    else this.newest.focus();
  }

  /** One may still go back, or simply go on. */
  #showEnding() {
    const title = endingOf(this.game.world);
    this.ending.hidden = !title;
    setText(this.ending.children[1], title);
    if (title) this.otherWay.hidden = !endingTurn(this.game.world);
  }

  async #beginAgain() {
    const made = await attempt(() => api.create(this.game.world.session.story));
    if (made) location.assign(`/play/${encodeURIComponent(made.id)}#narrative`);
  }

  #offerEarlier() {
    const { earlier } = this.game;
    this.earlier.hidden = !earlier;
    if (earlier) setText(this.earlier, t("story.earlier", { count: earlier }));
    if (this.heightBefore && earlier !== this.earlierBefore) {
      this.scroller.scrollTop += this.scroller.scrollHeight - this.heightBefore; // what is being read stays where it is
      this.heightBefore = 0;
      if (!earlier) this.firstBefore?.focus({ preventScroll: true });
    }
  }

  #showEarlier() {
    this.following = false;
    this.heightBefore = this.scroller.scrollHeight;
    this.earlierBefore = this.game.earlier;
    this.firstBefore = this.page.firstElementChild;
    this.game.showEarlier();
  }

  /**
   * Go to a turn, once it is here and in a view that is shown.
   * @param {number} turn @param {number} newer how many turns that count come after it
   * @param {(part: TurnPart|null) => Range|null|void} arrived told the turn, or that there is none; returns what to bring in sight
   */
  goTo(turn, newer, arrived) {
    this.wanted = { turn, newer, arrived };
    if (!this.game.world.turns.has(turn)) this.game.showNewest(newer + 1);
    else this.game.changed();
  }

  /** Do not go there after all. */
  stay() {
    this.wanted = null;
  }

  #arrive() {
    if (!this.wanted || !this.node.checkVisibility()) return;
    const { turn, newer, arrived } = this.wanted;
    const part = [...this.turns.parts.values()].find((one) => one.turn.turn === turn);
    const { world, earlier } = this.game;
    if (!part && earlier && !world.turns.has(turn) && activeTurns(world).length <= newer) return; // it is on its way
    this.wanted = null;
    this.following = false;
    this.#hold(false);
    const place = arrived(part ?? null);
    if (!part) return;
    this.#bring(part.node, place ?? part.node);
    requestAnimationFrame(() => {
      this.#bring(part.node, place ?? part.node); // what came in sight may be taller than it was thought to be
      if (document.activeElement === document.body) part.focus();
    });
  }

  /** The beginning of a turn, or a place in it that is further down. @param {Element} node @param {Element|Range} place */
  #bring(node, place) {
    const [top, at, height] = [this.#topOf(node), this.#topOf(place), this.scroller.clientHeight];
    this.scroller.scrollTo({ top: at - top < 0.7 * height ? top - MARGIN_ABOVE_TURN : at - 0.4 * height, behavior: "instant" });
  }

  /** That nothing is written is said once the story has come, and has nothing in it. */
  #showBlank() {
    if (this.empty) return;
    this.turns.show([], (turn) => turn, () => null);
    if (!this.game.opened) return;
    this.empty = h("div", { class: "empty" }, icon("book"),
      h("h2", { text: t("story.blank") }),
      h("p", { text: t("story.blank_note") }));
    this.page.append(this.empty);
  }

  // --- what is in sight ---------------------------------------------------------------------------------

  /** How far down a node begins, from the top of everything that can be scrolled. */
  #topOf(node) {
    return node.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top + this.scroller.scrollTop;
  }

  get #bottom() {
    return this.scroller.scrollHeight - this.scroller.clientHeight;
  }

  /** As far down as can be without pushing the beginning of the current turn out of sight: one reads from there. */
  #target() {
    if (!this.newest || (this.newest.node === this.page.firstElementChild && this.earlier.hidden)) return 0;
    return Math.max(0, Math.min(this.#bottom, this.#topOf(this.newest.node) - MARGIN_ABOVE_TURN));
  }

  /** A turn that comes is held at its beginning, whatever happens around it; one that is left by an undo stays where it is. */
  #setNewest(newest) {
    if (newest !== this.newest) this.#hold(this.following && (newest?.turn.turn ?? 0) >= (this.newest?.turn.turn ?? 0));
    this.newest = newest;
  }

  /** While a place is held the browser's own anchoring, which keeps another one, is off. */
  #hold(held) {
    this.held = held;
    this.scroller.classList.toggle("held", held);
  }

  follow() {
    this.following = true;
    const top = this.#target();
    const { scrollTop } = this.scroller;
    if (scrollTop < top - 1 || (this.held && scrollTop > top + 1)) this.scroller.scrollTo({ top, behavior: "instant" });
    [this.lastTop, this.lastHeight] = [this.scroller.scrollTop, this.scroller.scrollHeight];
    this.#showJump();
  }

  /** Only a reader moves up; pictures that load and turns that go move the text as well, and mean nothing. */
  #scrolled() {
    const { scrollTop, scrollHeight } = this.scroller;
    if (Math.abs(scrollTop - this.lastTop) > 1 && scrollHeight >= this.lastHeight) this.#hold(false);
    if (scrollTop >= this.#target() - NEAR) this.following = true;
    else if (scrollTop < this.lastTop && scrollHeight >= this.lastHeight) this.following = false;
    [this.lastTop, this.lastHeight] = [scrollTop, scrollHeight];
    this.#showJump();
  }

  /** Go to the first of the things that the button names. */
  #goDown() {
    const top = Math.min(this.#bottom, this.goal ? this.#topOf(this.goal) - MARGIN_ABOVE_TURN : this.#bottom);
    this.scroller.scrollTo({ top, behavior: calm() ? "instant" : "smooth" });
  }

  /** A tall turn hides what it ends with: the button says what there is, and is gone once it can be seen. */
  #showJump() {
    const things = this.#bottom - this.scroller.scrollTop < NEAR ? [] : this.#thingsBelow();
    this.jump.hidden = !things.length;
    this.goal = things[0]?.node ?? null;
    setText(this.below, things.map((thing) => thing.name).join(" · "));
    if (this.jump.hidden) settleFocus();
  }

  /** @returns {{name: string, node: Element|null}[]} in their order */
  #thingsBelow() {
    const { newest } = this;
    const edge = this.scroller.getBoundingClientRect().bottom;
    const under = (node, part = 1) => {
      const { top, height } = node.getBoundingClientRect();
      return node.checkVisibility() && top + part * height > edge;
    };
    if (newest && newest.node.getBoundingClientRect().top > edge) return [{ name: t("story.newest"), node: newest.node }];
    const things = newest?.thingsToFind().filter(({ node }) => under(node, HALF)) ?? [];
    if (under(this.ending)) things.push({ name: t("story.the_end"), node: this.ending });
    const first = newest?.choices.firstElementChild;
    if (first && newest.choices.checkVisibility()) {
      if (under(first)) things.push({ name: t("story.choices", { count: newest.choices.childElementCount }), node: first });
      else if (!things.length) return [];
    }
    return things.length ? things : [{ name: t("story.more"), node: null }];
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
