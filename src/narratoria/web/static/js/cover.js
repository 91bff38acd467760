/** A picture for a story that has none: a landscape at night, always the same for the same name. */
import { s } from "./dom.js";

function* numbers(seed) {
  let state = 2166136261;
  for (const letter of seed) state = Math.imul(state ^ letter.codePointAt(0), 16777619);
  for (;;) {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    yield ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  }
}

let made = 0;

/** @param {string} seed */
export function cover(seed) {
  const random = numbers(seed);
  const next = (low, high) => low + (high - low) * random.next().value;
  const hue = next(215, 345);
  const id = `sky-${(made += 1)}`;
  const svg = s("svg", { class: "cover", viewBox: "0 0 320 180", preserveAspectRatio: "xMidYMid slice", "aria-hidden": "true" },
    s("defs", {}, s("linearGradient", { id, x1: 0, y1: 0, x2: 0, y2: 1 },
      s("stop", { offset: 0, "stop-color": `hsl(${hue} 45% 11%)` }), s("stop", { offset: 0.65, "stop-color": `hsl(${hue + 25} 42% 32%)` }), s("stop", { offset: 1, "stop-color": `hsl(${hue + 50} 60% 62%)` }))),
    s("rect", { width: 320, height: 180, fill: `url(#${id})` }));
  for (let star = 0; star < 36; star += 1) svg.append(s("circle", { cx: next(0, 320).toFixed(1), cy: next(0, 105).toFixed(1), r: next(0.3, 1.1).toFixed(2), fill: "#fff", opacity: next(0.2, 0.85).toFixed(2) }));
  const [x, y, r] = [next(105, 215), next(34, 72), next(11, 22)];
  svg.append(s("circle", { cx: x, cy: y, r: r * 2.4, fill: "#fff", opacity: 0.06 }), s("circle", { cx: x, cy: y, r, fill: `hsl(${hue + 40} 60% 90%)` }));
  for (let ridge = 0; ridge < 3; ridge += 1) svg.append(s("path", { d: hills(next, 98 + ridge * 26, 30 - ridge * 6), fill: `hsl(${hue + 12 - ridge * 6} ${38 - ridge * 4}% ${25 - ridge * 8}%)` }));
  return svg;
}

function hills(next, base, height) {
  let path = `M0 180V${base}`;
  const step = 32;
  for (let x = 0; x < 320; x += step) {
    const peak = base - next(-height / 3, height);
    path += `Q${x + step / 2} ${peak.toFixed(1)} ${x + step} ${(base - next(-6, 8)).toFixed(1)}`;
  }
  return `${path}V180Z`;
}
