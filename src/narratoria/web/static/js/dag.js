/** A plan as a picture: calls as boxes, left to right by depth, dependencies as lines. */
import { s, setAttribute } from "./dom.js";

const BOX = { width: 148, height: 44 };
const GAP = { x: 56, y: 20 };
const PAD = 12;
/** A level of more calls than this is a block of several columns, not a tower that pushes all else out of sight. */
const MOST_ROWS = 6;
const BLOCK_GAP = 16;
const LONGEST_NAME = 17;

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
    const needs = (known.get(id).dependencies ?? []).filter((other) => known.has(other));
    if (needs.every((other) => depth.has(other))) {
      depth.set(id, Math.max(-1, ...needs.map((other) => depth.get(other))) + 1);
      left = waiting.length + 1;
    } else waiting.push(id);
  }
  const result = [];
  for (const [id, level] of depth) (result[level] ??= []).push(id);
  return result;
}

/** Order each level by where its dependencies are, so that lines cross less. */
function untangle(columns, calls) {
  const needs = new Map(calls.map((call) => [call.toolId, call.dependencies ?? []]));
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
  for (const call of calls) for (const other of call.dependencies ?? []) if (at.has(other) && at.has(call.toolId)) svg.append(line(at.get(other), at.get(call.toolId), blocks, call.toolId));
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
        setAttribute(node, "class", `dag-box ${status(id)}`);
        words.push(`${id} ${status(id)}`);
      }
      for (const edge of svg.querySelectorAll(".dag-line")) edge.classList.toggle("active", status(edge.dataset.to) === "running");
      setAttribute(svg, "aria-label", `Plan of ${calls.length} calls: ${words.join(", ")}`);
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
  bend(to.x, end);
  return s("path", { class: "dag-line", "data-to": id, d });
}

const shorten = (text) => (text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME - 1)}…` : text);

function box(call, { x, y }, choose) {
  const tool = call.toolPath.split(/[\\/]/).at(-1);
  const node = s("g", { class: "dag-box", transform: `translate(${x} ${y})` },
    s("title", { text: `${call.toolId}: ${call.toolPath}${call.required === false ? " (optional)" : ""}` }),
    s("rect", { width: BOX.width, height: BOX.height, rx: 12, "stroke-dasharray": call.required === false ? "5 4" : null }),
    s("circle", { cx: 18, cy: BOX.height / 2, r: 5 }),
    s("text", { x: 32, y: call.toolId === tool ? 27 : 19, class: "dag-name", text: shorten(tool) }),
    call.toolId === tool ? "" : s("text", { x: 32, y: 34, class: "dag-id", text: shorten(call.toolId) }));
  node.addEventListener("click", () => choose(call.toolId));
  return node;
}
