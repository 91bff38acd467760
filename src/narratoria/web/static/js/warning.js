/** The first warning of a story that can be played: for whoever writes it, in the library and in the Tools view. */
import { coded, h } from "./dom.js";
import { language, t } from "./words.js";

/** @param {string} warning */
export function warningLine(warning) {
  return h("p", { class: "card-note card-problem", lang: language() }, t("turn.warning"), h("code", { text: warning, lang: "en" }), " ", ...coded(t("library.check")));
}
