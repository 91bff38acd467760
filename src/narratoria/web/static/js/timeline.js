/** What ran when: a row per call, a bar per attempt. */
import { WORDS } from "./dag.js";
import { duration, h, Keyed, setAttribute, setText } from "./dom.js";
import { t } from "./words.js";

/** Seconds a timeline may span while something runs: it grows in steps, so that a bar is seen to grow too. */
const SPANS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];

export class Timeline {
  /** @param {(call: string) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.rows = h("div", { class: "gantt-rows" });
    this.axis = h("div", { class: "gantt-axis", "aria-hidden": "true" }, h("span", { text: "0" }), h("span"), h("span"));
    this.node = h("div", { class: "gantt", role: "group", "aria-label": t("tools.timeline") }, this.rows, this.axis);
    this.keyed = new Keyed(this.rows);
  }

  /** @param {import("./world.js").Call[]} calls */
  update(calls) {
    const now = Date.now() / 1000;
    const started = calls.filter((call) => call.attempts.length);
    const from = Math.min(...started.map((call) => call.started));
    const end = Math.max(from + 0.001, ...started.map((call) => call.ended ?? now));
    const running = started.some((call) => call.ended === null);
    const to = running ? from + (SPANS.find((span) => span > end - from) ?? end - from) : end;
    this.keyed.show(started, (call) => call.id, () => this.#row());
    const times = Map.groupBy(started, (call) => call.tool);
    for (const { call, id } of this.keyed.parts.values()) setText(id, times.get(call.tool).length > 1 ? call.toolId ?? "" : "");
    for (const part of this.keyed.parts.values()) part.draw(from, to, now);
    setText(this.axis.children[1], duration((to - from) / 2));
    setText(this.axis.children[2], duration(to - from));
  }

  #row() {
    const name = h("span");
    const id = h("span", { class: "quiet" });
    const track = h("span", { class: "gantt-track" });
    const node = h("button", { class: "gantt-row" }, h("span", { class: "gantt-name" }, name, " ", id), track);
    const part = {
      node,
      id,
      update: (call) => {
        part.call = call;
        setText(name, call.tool);
        while (track.children.length < call.attempts.length) track.append(h("i"));
      },
      draw: (from, to, now) => {
        const span = to - from;
        part.call.attempts.forEach((attempt, index) => {
          const bar = track.children[index];
          const end = attempt.ended ?? now;
          bar.className = attempt.outcome;
          bar.style.insetInlineStart = `${(100 * (attempt.started - from)) / span}%`;
          bar.style.width = `${(100 * Math.max(0, end - attempt.started)) / span}%`;
        });
        const { tool, status, started, ended } = part.call;
        setAttribute(node, "aria-label", t("tools.bar", { tool, status: WORDS[status] ?? status, from: duration(started - from), time: duration((ended ?? now) - started) }));
      },
    };
    node.addEventListener("click", () => this.choose(part.call.id));
    return part;
  }
}
