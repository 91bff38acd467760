/** What was remembered for a turn, and why, in plain words. */
import { t } from "./words.js";

/** Letters of a memory without a name. */
const EXCERPT = 60;
const WHYS = {
  note: () => t("recall.note"),
  pinned: () => t("recall.pinned"),
  always: () => t("recall.always"),
  state: () => t("recall.state"),
  keyword: ({ word, earlier }) => (earlier ? t("recall.earlier", { word: short(word) }) : t("recall.keyword", { word: short(word) })),
  meaning: () => t("recall.meaning"),
};

const short = (text) => (text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text);

/** @param {{why: string, word?: string, earlier?: boolean}} one */
export const why = (one) => (WHYS[one.why] ?? WHYS.meaning)({ word: "", ...one });

/** What it is called. @param {{kind: string, name?: string, text: string}} one */
export function memoryName({ kind, name = "", text }) {
  if (kind === "note") return t("memory.note");
  if (kind === "turn" && /^\d+$/.test(name)) return t("turn.number", { turn: Number(name) });
  return short(name || text);
}
