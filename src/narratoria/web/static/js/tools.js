/** The tools view: for a turn, the plans with their pictures, the timeline, and every call. */
import { api } from "./api.js";
import { CallCard } from "./callcard.js";
import { planPicture } from "./dag.js";
import { h, Keyed, setAttribute, setText } from "./dom.js";
import { EarlierTurns } from "./earlier.js";
import { activeTurns } from "./world.js";
import { icon } from "./icons.js";
import { Timeline } from "./timeline.js";
import { manner } from "./turn.js";
import { warningLine } from "./warning.js";
import { t } from "./words.js";

/** With few calls in a turn there is room to show what each of them did. */
const FEW = 3;
const TICK = 200;

export class ToolsView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    /** @type {number|null} the chosen turn; null follows the newest */
    this.chosen = null;
    this.select = h("select", { id: "tools-turn", on: { change: () => { this.chosen = this.select.value === "" ? null : Number(this.select.value); this.update(); } } });
    this.earlier = new EarlierTurns(game);
    this.warning = h("div", { class: "quiet", hidden: true });
    this.empty = h("div", { class: "empty" }, icon("wrench"), h("h2", { text: t("tools.none") }),
      h("p", { text: t("tools.none_note") }));
    this.planList = h("div", { class: "plans" });
    this.plans = new Keyed(this.planList);
    this.timeline = new Timeline((id) => this.reveal(id));
    this.timelineCard = h("section", { class: "card timeline-card" }, h("h2", { text: t("tools.timeline") }), this.timeline.node);
    this.callList = h("div", { class: "calls" });
    this.calls = new Keyed(this.callList);
    this.callsTitle = h("h2", { text: t("tools.calls") });
    this.content = h("div", { class: "tools-content" }, this.planList, this.timelineCard, this.callsTitle, this.callList);
    this.node = h("div", { class: "scroll-view" }, h("div", { class: "wide-page" },
      h("header", { class: "view-head" }, h("h1", { text: t("shell.tools") }), h("label", { for: "tools-turn", class: "visually-hidden", text: t("tools.shown") }), this.select),
      this.warning, this.earlier.node, this.empty, this.content));
    this.opened = new Set();
    setInterval(() => this.#tick(), TICK);
  }

  /** Deep link: #tools/<call>. @returns {boolean} whether it is here */
  show(call) {
    if (!this.game.world.calls.has(call)) return false;
    this.reveal(call);
    return true;
  }

  reveal(id) {
    const { world } = this.game;
    const call = world.calls.get(id);
    if (!call) return;
    const newest = this.#turns().at(-1);
    this.chosen = newest?.turn === call.turn ? null : call.turn;
    this.update();
    const card = this.calls.parts.get(id);
    if (!card) return;
    card.open();
    card.node.scrollIntoView({ block: "nearest" });
    card.summary.focus({ preventScroll: true });
  }

  /** What `check` warns of in this story; asked for again whenever it was saved. */
  async #readWarning() {
    const { session, storySaved } = this.game.world;
    if (!session || this.warned === storySaved) return;
    this.warned = storySaved;
    const stories = await api.stories().catch(() => []);
    const { warning = "" } = stories.find((story) => story.id === session.story) ?? {};
    this.warning.hidden = !warning;
    this.warning.replaceChildren(warning ? warningLine(warning) : "");
  }

  #turns() {
    return activeTurns(this.game.world).filter((turn) => turn.calls.length || turn.plans.length || turn.refusals.length);
  }

  update() {
    const { world } = this.game;
    const turns = this.#turns();
    this.earlier.update();
    this.#readWarning();
    this.#options(turns);
    const turn = turns.find((one) => one.turn === this.chosen) ?? turns.at(-1);
    this.empty.hidden = Boolean(turn);
    this.content.hidden = this.select.hidden = !turn;
    if (!turn) return;
    const calls = turn.calls.map((id) => world.calls.get(id));
    const plans = turn.plans.map((id) => world.plans.get(id));
    this.plans.show([...turn.refusals.map((refusal) => ({ refusal })), ...plans], (plan) => plan.refusal ?? plan, (plan) => (plan.refusal ? refusalCard(plan.refusal) : this.#planCard(plan)));
    this.timelineCard.hidden = !calls.some((call) => call.attempts.length);
    if (!this.timelineCard.hidden) this.timeline.update(calls);
    this.callsTitle.hidden = !calls.length;
    this.calls.show(calls, (call) => call.id, (call) => new CallCard(call, this.game));
    for (const call of calls) this.#openAtFirst(call, calls.length);
  }

  /** What is worth looking at is open when it first appears; after that the reader decides. */
  #openAtFirst(call, count) {
    const worth = count <= FEW || call.status === "running" || call.status === "failed" || call.status === "timeout";
    if (!worth || this.opened.has(call.id)) return;
    this.opened.add(call.id);
    this.calls.parts.get(call.id).open();
  }

  #options(turns) {
    const key = turns.map((turn) => turn.turn).join();
    if (key !== this.optionsKey) {
      this.optionsKey = key;
      const label = (turn) => [t("turn.number", { turn: turn.turn }), turn.prompt?.slice(0, 48)].filter(Boolean).join(" · ");
      this.select.replaceChildren(h("option", { value: "", text: t("tools.newest") }), ...turns.toReversed().map((turn) => h("option", { value: turn.turn, text: label(turn) })));
    }
    this.select.value = this.chosen ?? "";
  }

  #planCard(plan) {
    const callOf = (toolId) => [...this.game.world.calls.values()].findLast((call) => call.plan === plan.id && call.toolId === toolId);
    const picture = plan.plan.tools?.length ? planPicture(plan.plan, (toolId) => this.reveal(callOf(toolId)?.id)) : null;
    const state = h("span", { class: "chip" });
    const disabled = plan.plan.disabledSkills ?? [];
    const frame = picture ? h("div", { class: "dag-frame", tabindex: "0", role: "group", "aria-label": t("tools.picture") }, picture.node) : h("p", { class: "quiet", text: t("tools.only_tells") });
    const node = h("section", { class: "card" },
      h("header", { class: "card-head" }, h("h2", { text: plan.attempt > 1 ? t("tools.plan_attempt", { attempt: plan.attempt }) : t("tools.plan") }),
        h("span", { class: "quiet", text: plan.narrator && manner(plan.narrator) }), state),
      frame,
      disabled.length ? h("p", { class: "quiet", text: t("tools.left_out", { skills: disabled.join(", ") }) }) : "",
      h("details", { class: "sub" }, h("summary", { text: t("tools.json") }), h("pre", { tabindex: "0", text: JSON.stringify(plan.plan, null, 2) })));
    if (picture) fadeWhereMore(frame);
    return {
      node,
      update: () => {
        setAttribute(state, "class", `chip ${plan.status}`);
        setText(state, { running: t("call.running"), completed: t("call.completed"), failed: t("call.failed") }[plan.status]);
        const otherwise = plan.status === "running" ? "waiting" : "skipped";
        picture?.update((toolId) => callOf(toolId)?.status ?? otherwise);
      },
    };
  }

  #tick() {
    const { world } = this.game;
    if (world.running !== null && !document.hidden && this.node.checkVisibility()) this.update();
  }
}

/** A picture wider than its card fades where there is more of it. */
function fadeWhereMore(frame) {
  const show = () => frame.classList.toggle("goes-on", frame.scrollLeft + frame.clientWidth < frame.scrollWidth - 4);
  frame.addEventListener("scroll", show, { passive: true });
  new ResizeObserver(show).observe(frame);
}

function refusalCard(refusal) {
  const node = h("section", { class: "card notice error" }, icon("warn"),
    h("div", {}, h("p", { text: refusal.narrator ? t("tools.refusal_by", { attempt: refusal.attempt, manner: manner(refusal.narrator) }) : t("tools.refusal", { attempt: refusal.attempt }) }),
      h("ul", {}, ...refusal.problems.map((text) => h("li", { dir: "auto", text })))));
  return { node };
}
