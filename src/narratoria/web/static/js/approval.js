/** The card of a call that waits for approval: what would run, with which input, and the answer. */
import { api } from "./api.js";
import { h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

/** Lines of an input that are shown without scrolling. */
const MOST_LINES = 12;

/** @param {import("./game.js").Game} game @param {any} item @returns {{node: Element, update: (item: any) => void}} */
export function approvalCard(game, item) {
  const id = `question-${item.question}`;
  const input = JSON.stringify(item.input ?? {}, null, 2);
  const what = h("strong", { id, dir: "auto" });
  const lines = input.split("\n").length;
  const shown = h("pre", { class: "approval-input", text: input, dir: "ltr", tabindex: "0", role: "group", "aria-label": t("approval.input") });
  const problem = h("p", { class: "approval-problem", role: "alert", hidden: true, dir: "auto" });
  const field = h("textarea", { id: `${id}-input`, rows: Math.min(lines, MOST_LINES), spellcheck: "false", dir: "ltr", class: "mono" });
  const reason = h("input", { id: `${id}-reason`, type: "text", autocomplete: "off", dir: "auto" });
  const main = h("div", { class: "notice-actions approval-actions" });
  const editing = h("div", { class: "approval-form", hidden: true });
  const refusing = h("form", { class: "approval-form", hidden: true });
  const outcome = h("span", { dir: "auto" });
  const because = h("p", { class: "quiet", dir: "auto", text: sentence(item.reason) });
  const past = h("details", { hidden: true }, h("summary", { text: t("approval.asked") }));
  const node = h("section", { class: "notice approval", "aria-labelledby": id }, icon("warn"),
    h("div", {}, h("p", {}, what, outcome), because, shown, problem, main, editing, refusing, past));

  const open = (part, focused) => {
    for (const one of [main, editing, refusing]) one.hidden = one !== part;
    shown.hidden = part === editing;
    problem.hidden = true;
    focused?.focus();
  };
  const send = async (answer) => {
    problem.hidden = true;
    const buttons = node.querySelectorAll("button");
    for (const one of buttons) one.setAttribute("aria-disabled", "true");
    try {
      await api.answer(game.id, item.question, answer);
    } catch (error) {
      problem.hidden = false;
      setText(problem, sentence(error.message));
    } finally {
      for (const one of buttons) one.removeAttribute("aria-disabled");
    }
  };
  const edit = () => {
    let edited;
    try {
      edited = JSON.parse(field.value);
    } catch (error) {
      problem.hidden = false;
      setText(problem, t("page.not_json", { reason: error.message }));
      field.focus();
      return;
    }
    send({ decision: "edit", input: edited });
  };
  const editButton = button(t("approval.edit"), "text", () => { field.value ||= input; open(editing, field); });
  const refuseButton = button(t("approval.refuse_why"), "text", () => open(refusing, reason));
  main.append(button(t("approval.approve"), "filled", () => send({ decision: "approve" })), editButton, refuseButton);
  editing.append(h("label", { for: field.id, text: t("approval.as_json") }), field,
    h("div", { class: "approval-actions" }, button(t("approval.run"), "filled", edit), button(t("approval.back"), "text", () => open(main, editButton))));
  refusing.append(h("label", { for: reason.id, text: t("approval.why") }), reason,
    h("div", { class: "approval-actions" }, h("button", { class: "button filled", type: "submit", text: t("approval.refuse") }), button(t("approval.back"), "text", () => open(main, refuseButton))));
  refusing.addEventListener("submit", (event) => { event.preventDefault(); send({ decision: "refuse", reason: reason.value }); });
  editing.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) edit(); });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || (editing.hidden && refusing.hidden)) return;
    event.stopPropagation();
    open(main, editing.hidden ? refuseButton : editButton);
  });

  const update = ({ answer }) => {
    const words = game.toolWords(item.tool);
    const name = words.title || item.title || words.sentence || item.tool;
    setText(what, answer ? `${name}: ` : t("approval.may", { name }));
    if (!answer || !past.hidden) return;
    node.classList.add("answered");
    for (const one of [main, editing, refusing, problem]) one.hidden = true;
    if (answer.input) setText(shown, JSON.stringify(answer.input, null, 2));
    shown.hidden = past.hidden = false;
    past.append(because, shown); // the story reads on; who wants to know opens it
    setText(outcome, told(answer));
  };
  return { node, update };
}

function button(text, kind, run) {
  return h("button", { class: `button ${kind}`, type: "button", text, on: { click: run } });
}

function sentence(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "";
}

function told({ decision, reason = "" }) {
  if (decision === "approved") return t("approval.approved");
  if (decision === "edited") return t("approval.edited");
  if (decision === "refused") return reason ? t("approval.refused_why", { reason }) : t("approval.refused");
  return t("approval.unanswered");
}
