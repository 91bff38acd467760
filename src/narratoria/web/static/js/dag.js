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
  const { at, width, height } = place(columns);
  const svg = s("svg", { class: "dag", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  for (const call of calls) for (const other of call.dependencies ?? []) if (at.has(other) && at.has(call.toolId)) svg.append(line(at.get(other), at.get(call.toolId), call.toolId));
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

/** Where each box stands: levels from left to right, each in the middle of the height. */
function place(columns) {
  const blocks = columns.map((column) => {
    const rows = Math.min(column.length, Math.max(MOST_ROWS, Math.ceil(Math.sqrt(2 * column.length))));
    const across = Math.ceil(column.length / rows);
    return { column, rows: Math.ceil(column.length / across), across };
  });
  const height = Math.max(1, ...blocks.map(({ rows }) => rows)) * (BOX.height + GAP.y) - GAP.y + 2 * PAD;
  const at = new Map();
  let x = PAD;
  for (const { column, rows, across } of blocks) {
    const top = (height - rows * (BOX.height + GAP.y) + GAP.y) / 2;
    column.forEach((id, index) => at.set(id, { x: x + (index % across) * (BOX.width + BLOCK_GAP), y: top + Math.floor(index / across) * (BOX.height + GAP.y) }));
    x += across * (BOX.width + BLOCK_GAP) - BLOCK_GAP + GAP.x;
  }
  return { at, width: x - GAP.x + PAD, height };
}

function line(from, to, id) {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return s("path", { class: "dag-line", "data-to": id, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
}

const shorten = (text) => (text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME - 1)}…` : text);

function box(call, { x, y }, choose) {
  const tool = call.toolPath.split(/[\\/]/).at(-1);
  const node = s("g", { class: "dag-box", transform: `translate(${x} ${y})` },
    s("title", { text: `${call.toolId}: ${call.toolPath}${call.required === false ? " (optional)" : ""}` }),
    s("rect", { width: BOX.width, height: BOX.height, rx: 12, "stroke-dasharray": call.required === false ? "5 4" : null }),
    s("circle", { cx: 18, cy: BOX.height / 2, r: 5 }),
    s("text", { x: 32, y: 19, class: "dag-name", text: shorten(tool) }),
    s("text", { x: 32, y: 34, class: "dag-id", text: shorten(call.toolId) }));
  node.addEventListener("click", () => choose(call.toolId));
  return node;
}
