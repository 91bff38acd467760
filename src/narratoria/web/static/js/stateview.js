/** The state view: the tree, what each turn changed, and the raw JSON. */
import { snackbar } from "./dialogs.js";
import { h, setAttribute } from "./dom.js";
import { EarlierTurns } from "./earlier.js";
import { activeTurns, provisionalState } from "./world.js";
import { icon } from "./icons.js";
import { Inspector } from "./inspector.js";
import { diff, isObject, pointer, touched } from "./merge.js";
import { StateTree } from "./statetree.js";
import { t } from "./words.js";

const LONGEST_VALUE = 120;
const FIRST_CHANGES = 100;

export class StateView {
  /** @param {import("./game.js").Game} game */
  constructor(game) {
    this.game = game;
    this.chosen = null;
    this.tree = new StateTree();
    this.inspector = new Inspector();
    this.empty = h("div", { class: "empty" }, icon("tree"), h("h2", { text: t("state.blank") }),
      h("p", { text: t("state.blank_note") }));
    this.select = h("select", { id: "state-turn", on: { change: () => { this.chosen = this.select.value === "" ? null : Number(this.select.value); this.drawn = -1; this.update(); } } });
    this.earlier = new EarlierTurns(game);
    this.changes = h("div", { class: "changes" });
    const changesPanel = h("div", { class: "panel", role: "tabpanel", id: "panel-changes", "aria-labelledby": "tab-changes" },
      h("div", { class: "inspector-bar" }, h("label", { for: "state-turn", class: "visually-hidden", text: t("state.compared") }), this.select), this.earlier.node, this.changes);
    const jsonPanel = h("div", { class: "panel", role: "tabpanel", id: "panel-json", "aria-labelledby": "tab-json", hidden: true }, this.inspector.node);
    this.panels = { changes: changesPanel, json: jsonPanel };
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": t("state.as") }, this.#tab("changes", t("state.changes")), this.#tab("json", t("state.raw")));
    this.content = h("div", { class: "state-content" },
      h("section", { class: "card", "aria-label": t("state.tree") }, this.tree.node), h("section", { class: "card", "aria-label": t("state.both") }, this.tabs, changesPanel, jsonPanel));
    this.node = h("div", { class: "scroll-view" }, h("div", { class: "wide-page" },
      h("header", { class: "view-head" }, h("h1", { text: t("shell.state") })), this.empty, this.content));
  }

  #tab(name, label) {
    const first = name === "changes";
    const tab = h("button", { role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": String(first), tabindex: first ? 0 : -1, text: label });
    tab.addEventListener("click", () => this.#choose(name));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      event.preventDefault();
      this.#choose(name === "changes" ? "json" : "changes").focus();
    });
    return tab;
  }

  #choose(name) {
    for (const [key, panel] of Object.entries(this.panels)) {
      const tab = this.tabs.querySelector(`#tab-${key}`);
      setAttribute(tab, "aria-selected", String(key === name));
      setAttribute(tab, "tabindex", key === name ? 0 : -1);
      panel.hidden = key !== name;
    }
    this.drawn = -1;
    this.update();
    return this.tabs.querySelector(`#tab-${name}`);
  }

  update() {
    const { world } = this.game;
    this.earlier.update();
    if (this.drawn === world.stateRev) return;
    this.drawn = world.stateRev;
    const state = provisionalState(world);
    const blank = !Object.keys(state).length;
    this.empty.hidden = !blank;
    this.content.hidden = blank;
    const turns = activeTurns(world);
    const last = turns.at(-1);
    const marks = last ? marksOf(diff(last.before, last.after)) : new Map();
    for (const { patch } of world.pending.values()) for (const path of touched(patch)) marks.set(path, "provisional");
    this.tree.show(state, marks);
    if (this.panels.json.hidden) this.#showChanges(turns);
    else this.inspector.show(state);
  }

  /** Deep link: #state/<path>. @param {string} path @returns {boolean} whether the state is here */
  show(path) {
    if (this.content.hidden) return false;
    if (!this.tree.reveal(path)) snackbar(t("state.gone"));
    return true;
  }

  #showChanges(turns) {
    const list = turns.filter((turn) => turn.patches.length);
    const key = list.map((turn) => turn.turn).join();
    if (key !== this.optionsKey) {
      this.optionsKey = key;
      this.select.replaceChildren(h("option", { value: "", text: t("state.newest") }), ...list.toReversed().map((turn) => h("option", { value: turn.turn, text: `${t("turn.number", { turn: turn.turn })} · ${turn.prompt.slice(0, 40)}` })));
      this.select.value = this.chosen ?? "";
    }
    const turn = list.find((one) => one.turn === this.chosen) ?? list.at(-1);
    const found = turn ? diff(turn.before, turn.after) : [];
    this.limit = turn?.turn === this.limitedTurn ? this.limit : FIRST_CHANGES;
    this.limitedTurn = turn?.turn;
    const left = found.length - this.limit;
    const more = h("button", { class: "button text", text: t("state.more", { count: left }), on: { click: () => { this.limit *= 5; this.#showChanges(turns); } } });
    const none = h("p", { class: "quiet", text: list.length ? t("state.same") : t("state.never") });
    this.changes.replaceChildren(...(found.length ? found.slice(0, this.limit).map(changeRow) : [none]), ...(left > 0 ? [more] : []));
  }
}

/** What to say of each path: changed, or on the way to something that changed. */
function marksOf(differences) {
  const marks = new Map();
  for (const { path, after } of differences) {
    const keys = path.map((key) => `/${pointer(key)}`);
    for (let depth = 1; depth < keys.length; depth += 1) marks.set(keys.slice(0, depth).join(""), "within");
    if (isObject(after)) for (const inner of touched(after, keys.join(""))) marks.set(inner, "changed");
    marks.set(keys.join(""), "changed");
  }
  return marks;
}

function short(value) {
  const text = JSON.stringify(value) ?? "";
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

function changeRow({ path, kind, before, after }) {
  return h("div", { class: `change ${kind}` },
    h("span", { class: "change-kind", text: { added: t("state.kind_new"), removed: t("state.kind_gone"), changed: t("state.kind_changed") }[kind] }),
    h("span", { class: "change-path", dir: "auto", text: path.join(" › ") }),
    kind === "added" ? "" : h("del", { text: short(before) }), kind === "removed" ? "" : h("ins", { text: short(after) }));
}
