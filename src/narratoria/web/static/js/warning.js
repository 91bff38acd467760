/** The first warning of a story that can be played: for whoever writes it, in the library and in the Tools view. */
import { coded, h } from "./dom.js";

/** @param {string} warning */
export function warningLine(warning) {
  return h("p", { class: "card-note card-problem", lang: "en" }, "Warning: ", h("code", { text: warning }), " ", ...coded("`narratoria check` tells all."));
}
