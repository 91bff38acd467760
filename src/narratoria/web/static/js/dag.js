/** A plan as a picture: calls as boxes, left to right by depth, dependencies as arrows. */
import { s, setAttribute, setText } from "./dom.js";
import { t } from "./words.js";

const BOX = { width: 148, height: 44 };
const GAP = { x: 56, y: 20 };
const PAD = 12;
/** A level of more calls than this is a block of several columns, not a tower that pushes all else out of sight. */
const MOST_ROWS = 6;
const BLOCK_GAP = 16;
const LONGEST_NAME = 17;
const LONGEST_ID = 9;
/** Of an arrow. */
const TIP = 8;
/** How a call stands, told by its shape and in a word, not by colour alone. In a square of 16. */
const MARKS = {
  completed: "M2 8.500 6 12.500 14 4",
  failed: "M3 3 13 13M13 3 3 13",
  timeout: "M3 2H13M3 14H13M4 2C4 6 7 6.500 8 8 9 6.500 12 6 12 2M4 14C4 10 7 9.500 8 8 9 9.500 12 10 12 14",
  skipped: "M2 8H13M9 4 13 8 9 12",
  running: "M4 2.500 13 8 4 13.500Z",
  retrying: "M13 8A5 5 0 1 1 11 4M11 1V4.500H7.500",
  waiting: "M3 8V8.010M8 8V8.010M13 8V8.010",
};
/** What became of a call, in a word. */
export const WORDS = { completed: t("dag.completed"), failed: t("dag.failed"), timeout: t("dag.timeout"), skipped: t("dag.skipped"), running: t("dag.running"), retrying: t("dag.retrying"), waiting: t("dag.waiting") };

/**
 * Depth of each call: one more than the deepest of those it waits for.
 * @param {{toolId: string, dependencies?: string[]}[]} calls
 * @returns {string[][]}
 */
export function levels(calls) {
  const known = new Map(calls.map((call) => [call.toolId, call]));
  const depth = new Map();
  const waiting = [...known.keys()];
  for (let left = waiting.length; waiting.length && left >= 0; left -= 1) {
    const id = waiting.shift();
    const needs = waitsFor(known.get(id)).filter((other) => known.has(other));
    if (needs.every((other) => depth.has(other))) {
      depth.set(id, Math.max(-1, ...needs.map((other) => depth.get(other))) + 1);
      left = waiting.length + 1;
    } else waiting.push(id);
  }
  const result = [];
  for (const [id, level] of depth) (result[level] ??= []).push(id);
  return result;
}

/** The calls one waits for: its dependencies, and those whose output its input refers to. */
export function waitsFor(call) {
  const found = new Set(call.dependencies ?? []);
  const waiting = [call.input];
  while (waiting.length) {
    const value = waiting.pop();
    if (value === null || typeof value !== "object" || Object.hasOwn(value, "$literal")) continue;
    if (typeof value.$from === "string") found.add(value.$from);
    else waiting.push(...Object.values(value));
  }
  return [...found];
}

/**
 * The lines to draw: without those that a longer way implies already. For a → b → c, c needs no line from a.
 * @param {{toolId: string}[]} calls
 * @returns {Map<string, string[]>} by toolId, the calls right before it
 */
export function directNeeds(calls) {
  const needs = new Map(calls.map((call) => [call.toolId, waitsFor(call)]));
  const all = new Map();
  for (const level of levels(calls)) {
    for (const id of level) {
      const above = new Set();
      for (const other of needs.get(id)) for (const far of all.get(other)?.above ?? []) above.add(far);
      all.set(id, { direct: needs.get(id).filter((other) => all.has(other) && !above.has(other)), above: new Set([...above, ...needs.get(id)]) });
    }
  }
  return new Map([...all].map(([id, { direct }]) => [id, direct]));
}

/** Order each level by where its dependencies are, so that lines cross less. */
function untangle(columns, calls) {
  const needs = new Map(calls.map((call) => [call.toolId, waitsFor(call)]));
  const place = new Map();
  for (const column of columns) {
    const centre = (id) => {
      const at = needs.get(id).map((other) => place.get(other)).filter((value) => value !== undefined);
      return at.length ? at.reduce((sum, value) => sum + value, 0) / at.length : 0;
    };
    column.sort((a, b) => centre(a) - centre(b));
    column.forEach((id, index) => place.set(id, index - (column.length - 1) / 2));
  }
}

/**
 * @param {any} plan Plan JSON
 * @param {(toolId: string) => void} choose
 */
export function planPicture(plan, choose) {
  const calls = plan.tools ?? [];
  const columns = levels(calls);
  untangle(columns, calls);
  const { at, blocks, width, height } = place(columns);
  const svg = s("svg", { class: "dag", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  for (const [id, direct] of directNeeds(calls)) for (const other of direct) svg.append(...line(at.get(other), at.get(id), blocks, id));
  const boxes = new Map();
  for (const call of calls) {
    if (!at.has(call.toolId)) continue;
    const node = box(call, at.get(call.toolId), choose);
    boxes.set(call.toolId, node);
    svg.append(node);
  }
  return {
    node: svg,
    /** @param {(toolId: string) => string} status */
    update(status) {
      const words = [];
      for (const [id, node] of boxes) {
        const state = status(id);
        setAttribute(node, "class", `dag-box ${state}`);
        setAttribute(node.querySelector(".dag-mark"), "d", MARKS[state] ?? MARKS.waiting);
        setText(node.querySelector(".dag-id"), `${WORDS[state] ?? state}${node.dataset.id ? ` · ${node.dataset.id}` : ""}`);
        words.push(`${id} ${WORDS[state] ?? state}`);
      }
      for (const edge of svg.querySelectorAll(".dag-line, .dag-tip")) edge.classList.toggle("active", status(edge.dataset.to) === "running");
      setAttribute(svg, "aria-label", t("dag.plan", { count: calls.length, calls: words.join(", ") }));
    },
  };
}

/**
 * Where each box stands: levels from left to right, each in the middle of the height.
 * @typedef {{left: number, right: number, lanes: number[]}} Block a level, and the heights at which a line can pass through it
 * @typedef {{x: number, y: number, level: number, first: boolean, last: boolean}} Spot first or last in its row of the block
 */
function place(columns) {
  const shapes = columns.map((column) => {
    const rows = Math.min(column.length, Math.max(MOST_ROWS, Math.ceil(Math.sqrt(2 * column.length))));
    const across = Math.ceil(column.length / rows);
    return { column, rows: Math.ceil(column.length / across), across };
  });
  const step = BOX.height + GAP.y;
  const height = Math.max(1, ...shapes.map(({ rows }) => rows)) * step - GAP.y + 2 * PAD;
  /** @type {Map<string, Spot>} */
  const at = new Map();
  let x = PAD;
  const blocks = shapes.map(({ column, rows, across }, level) => {
    const top = (height - rows * step + GAP.y) / 2;
    const left = x;
    column.forEach((id, index) => {
      const [row, place] = [Math.floor(index / across), index % across];
      at.set(id, { x: left + place * (BOX.width + BLOCK_GAP), y: top + row * step, level, first: place === 0, last: place === across - 1 });
    });
    const right = left + across * (BOX.width + BLOCK_GAP) - BLOCK_GAP;
    x = right + GAP.x;
    return { left, right, lanes: Array.from({ length: rows + 1 }, (_, row) => top + row * step - GAP.y / 2) };
  });
  return { at, blocks, width: x - GAP.x + PAD, height };
}

/** Of the ways through a block, the one nearest to where a line is going. */
const nearest = (lanes, y) => lanes.reduce((best, lane) => (Math.abs(lane - y) < Math.abs(best - y) ? lane : best));

/** From box to box, between the rows of whatever stands in the way. @param {Spot} from @param {Spot} to @param {Block[]} blocks */
function line(from, to, blocks, id) {
  const middle = BOX.height / 2;
  let [x, y] = [from.x + BOX.width, from.y + middle];
  const end = to.y + middle;
  let d = `M${x} ${y}`;
  const bend = (toX, toY) => {
    const half = (toX - x) / 2;
    d += `C${x + half} ${y} ${toX - half} ${toY} ${toX} ${toY}`;
    [x, y] = [toX, toY];
  };
  const along = (toX) => {
    d += `H${toX}`;
    x = toX;
  };
  if (!from.last) {
    bend(x + BLOCK_GAP, nearest([y - middle - GAP.y / 2, y + middle + GAP.y / 2], end));
    along(blocks[from.level].right);
  }
  for (const { left, right, lanes } of blocks.slice(from.level + 1, to.level)) {
    bend(left, nearest(lanes, y));
    along(right);
  }
  if (!to.first) {
    bend(blocks[to.level].left, nearest([end - middle - GAP.y / 2, end + middle + GAP.y / 2], y));
    along(to.x - BLOCK_GAP);
  }
  bend(to.x - TIP, end);
  const tip = `M${to.x - TIP - 1} ${end - 5}L${to.x - 1} ${end}L${to.x - TIP - 1} ${end + 5}Z`;
  return [s("path", { class: "dag-line", "data-to": id, d }), s("path", { class: "dag-tip", "data-to": id, d: tip })];
}

const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function box(call, { x, y }, choose) {
  const tool = call.toolPath.split(/[\\/]/).at(-1);
  const node = s("g", { class: "dag-box", "data-id": call.toolId === tool ? "" : shorten(call.toolId, LONGEST_ID), transform: `translate(${x} ${y})` },
    s("title", { text: call.required === false ? t("dag.optional", { call: `${call.toolId}: ${call.toolPath}` }) : `${call.toolId}: ${call.toolPath}` }),
    s("rect", { width: BOX.width, height: BOX.height, rx: 12, "stroke-dasharray": call.required === false ? "5 4" : null }),
    s("path", { class: "dag-mark", transform: `translate(10 ${BOX.height / 2 - 8})` }),
    s("text", { x: 34, y: 19, class: "dag-name", text: shorten(tool, LONGEST_NAME) }),
    s("text", { x: 34, y: 34, class: "dag-id" }));
  node.addEventListener("click", () => choose(call.toolId));
  return node;
}
