/**
 * Where the keyboard goes when what it stood on is gone: a choice that was taken, a button that was switched off, a turn
 * that was taken back. Left alone it falls to the body, and the next Tab begins at the top of the page.
 */

/** What had the focus last, unless a person has taken it away. @type {Element|null} */
let last = null;
/** The turn it was in: what has been taken out of one cannot be asked for it any more. @type {HTMLElement|null} */
let around = null;
/** @type {(from: Element) => HTMLElement|null|undefined} */
let refuge = () => null;

/** @param {Element} node */
function usable(node) {
  return node.isConnected && !node.matches(":disabled") && node.checkVisibility({ visibilityProperty: true });
}

// only a press beside it takes the focus away; what vanishes is told of as well, and just before it does
let pressed = false;
document.addEventListener("pointerdown", () => { pressed = true; }, true);
for (const type of ["pointerup", "pointercancel", "keydown"]) document.addEventListener(type, () => { pressed = false; }, true);
document.addEventListener("focusin", (event) => {
  last = event.target;
  around = last.closest?.(".turn") ?? null;
});
document.addEventListener("focusout", (event) => {
  if (pressed && event.relatedTarget === null) last = null;
});

/** Say where a lost focus belongs whose turn is gone as well. @param {(from: Element) => HTMLElement|null|undefined} find */
export function offerRefuge(find) {
  refuge = find;
}

/** Give the focus on where it was lost: to the turn it was in, however many have come before this frame. */
export function settleFocus() {
  const active = document.activeElement;
  const from = active && active !== document.body ? active : last;
  if (!from || usable(from) || document.querySelector("dialog[open]")) return;
  const next = around && usable(around) ? around : refuge(from);
  (next && usable(next) ? next : document.getElementById("main"))?.focus({ preventScroll: true });
}

/** On a touch screen the focus in a field brings the keyboard up, which nobody asked for. */
export function typesByHand() {
  return matchMedia("(hover: hover)").matches;
}

const ELSEWHERE = "textarea, input, select, dialog, audio, video, [role=menu], [role=tree], [contenteditable]";

/** A letter typed beside any field; digits are for the choices. @param {KeyboardEvent} event */
export function isStrayLetter(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  if (event.target.closest?.(ELSEWHERE) || document.querySelector("dialog[open]")) return false;
  return event.key === "Process" || ([...event.key].length === 1 && !/[\s\d]/.test(event.key));
}
