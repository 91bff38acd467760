/** The parts of a call taken apart: attempts, what it changed, the request, its events. For a record and for a repetition. */
import { snackbar } from "./dialogs.js";
import { duration, fileSize, h } from "./dom.js";
import { EventList } from "./eventlist.js";
import { icon } from "./icons.js";
import { pointer } from "./merge.js";
import { t } from "./words.js";

export const STATUS = {
  running: [t("call.running"), "clock"],
  retrying: [t("call.retrying"), "retry"],
  completed: [t("call.completed"), "check"],
  failed: [t("call.failed"), "error"],
  timeout: [t("call.timeout"), "hourglass"],
  skipped: [t("call.skipped"), "skip"],
};
const LONGEST_VALUE = 200;

/**
 * @param {any} call as the server takes it apart
 * @param {(first: number, most: number) => Promise<any>} read more of its events
 * @param {{links?: boolean}} [options] links only for what is part of the story
 */
export function callParts(call, read, { links = true } = {}) {
  const events = h("details", { class: "sub" }, h("summary", { text: t("call.events", { number: call.eventCount }) }));
  let list = null;
  events.addEventListener("toggle", () => {
    if (!events.open) return;
    list ??= new EventList(call.tool, call.eventCount, read);
    if (!list.node.parentNode) events.append(list.node);
    list.draw();
  });
  return [attempts(call), changes(call, links), request(call), events].filter(Boolean);
}

export function section(title, ...content) {
  return h("section", { class: "call-part" }, h("h3", { text: title }), ...content);
}

// --- attempts -------------------------------------------------------------------------------------------

function attempts(call) {
  if (!call.attempts.length) return section(t("call.attempts_title"), h("p", { class: "quiet", text: call.error ?? t("call.not_run") }));
  return section(t("call.attempts", { count: call.attempts.length }), h("ol", { class: "attempts" }, ...call.attempts.map((one) => attemptRow(one, call))));
}

function attemptRow(one, call) {
  const last = one === call.attempts.at(-1);
  const state = one.ok ? "completed" : one.ok === null ? "running" : last && call.state !== "running" ? call.state : one.errorCode === "TIMEOUT" ? "timeout" : "failed";
  const [label, symbol] = STATUS[state] ?? STATUS.failed;
  const facts = [
    one.duration === null ? null : duration(one.duration),
    one.signal !== null ? t("call.signal", { signal: one.signal }) : one.exitCode !== null ? t("call.exit", { code: one.exitCode }) : null,
    one.ok === false ? one.errorCode : null,
  ].filter((fact) => fact !== null);
  return h("li", { class: `attempt ${state}` },
    h("div", { class: "attempt-head" }, h("span", { class: "attempt-number", text: `${one.attempt}` }), h("span", { class: `chip ${state}` }, icon(symbol), h("span", { text: label })), ...facts.map((text) => h("span", { class: "fact", text }))),
    one.error && !last ? h("p", { class: "attempt-error", dir: "auto", text: one.error }) : "",
    one.stderr ? h("details", { class: "sub" }, h("summary", { text: t("call.stderr") }), h("pre", { tabindex: "0", text: one.stderr })) : "",
    one.delay === null ? "" : h("p", { class: "quiet attempt-wait" }, icon("clock"), h("span", { text: t("call.waited", { time: duration(one.delay) }) })));
}

// --- what it changed ------------------------------------------------------------------------------------

function changes(call, links) {
  const rows = [
    ...call.changes.map((one) => changeRow(one, links)),
    ...call.otherChanges.map((text) => h("div", { class: "change" }, h("span", { class: "change-kind", text: t("call.also") }), h("span", { class: "change-path", dir: "auto", text }))),
    ...call.effects.map((one) => h("div", { class: "change" }, h("span", { class: "change-kind", text: t("call.outside") }), h("span", { class: "change-path", dir: "auto", text: one.reversible ? one.description : t("call.for_good", { what: one.description }) }))),
    ...call.assets.map((one) => assetRow(one, links)),
    ...call.refusedAssets.map((text) => h("div", { class: "change" }, h("span", { class: "change-kind", text: t("call.refused") }), h("span", { class: "change-path", dir: "auto", text }))),
  ];
  const left = call.changeCount - call.changes.length;
  const dropped = !call.committed && call.patches.length && call.state !== "running";
  return section(t("call.changed"), h("div", { class: "changes" }, ...rows),
    left > 0 ? h("p", { class: "quiet", text: t("call.more_values", { count: left }) }) : "",
    rows.length || dropped ? "" : h("p", { class: "quiet", text: call.state === "running" ? t("call.nothing_yet") : t("call.nothing") }),
    dropped ? h("details", { class: "sub" }, h("summary", { text: t("call.dropped") }), h("pre", { tabindex: "0", text: JSON.stringify(call.patches, null, 2) })) : "");
}

const short = (value) => {
  const text = JSON.stringify(value) ?? "";
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
};

function changeRow({ path, kind, before, after }, links) {
  const name = path.join(" › ");
  const to = `#state/${encodeURIComponent(path.map((key) => `/${pointer(key)}`).join(""))}`;
  return h("div", { class: `change ${kind}` },
    h("span", { class: "change-kind", text: { added: t("state.kind_new"), removed: t("state.kind_gone"), changed: t("state.kind_changed") }[kind] }),
    links ? h("a", { class: "change-path", dir: "auto", href: to, text: name }) : h("span", { class: "change-path", dir: "auto", text: name }),
    kind === "added" ? "" : h("del", { text: short(before ?? null) }), kind === "removed" ? "" : h("ins", { text: short(after ?? null) }));
}

function assetRow(asset, links) {
  const name = asset.metadata?.title || asset.assetId;
  const to = `#assets/${encodeURIComponent(`${asset.call}/${asset.assetId}`)}`;
  return h("div", { class: "change added" }, h("span", { class: "change-kind", text: t("call.asset") }),
    links ? h("a", { class: "change-path", dir: "auto", href: to, text: String(name) }) : h("span", { class: "change-path", dir: "auto", text: String(name) }),
    h("ins", { text: `${asset.mediaType}, ${fileSize(asset.size)}` }));
}

// --- the request ----------------------------------------------------------------------------------------

function request(call) {
  const text = JSON.stringify(call.request ?? call.input, null, 2);
  const title = call.request ? t("call.sent") : t("call.input");
  const copy = h("button", { class: "button text small", on: { click: () => copyText(text, t("call.input_copied"), pre) } }, icon("copy"), h("span", { text: t("page.copy") }));
  const pre = h("pre", { tabindex: "0", text });
  return h("details", { class: "sub" }, h("summary", { text: title }), h("div", { class: "request" }, pre, copy));
}

export async function copyText(text, told, node) {
  try {
    await navigator.clipboard.writeText(text);
    snackbar(told);
  } catch {
    getSelection().selectAllChildren(node);
    snackbar(t("page.copy_yourself"));
  }
}
