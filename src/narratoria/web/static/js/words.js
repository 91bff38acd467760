/** The words of the interface, in the language of the page; the server puts them before the scripts that use them. */

/** @type {Object<string, string|Object<string, string>>} */
const words = typeof modules === "undefined" ? {} : modules.words;
export const language = () => document.documentElement.lang || "en";
/** Whether it is written from right to left. */
export const fromRight = () => document.documentElement.dir === "rtl";

const FROM_RIGHT = /^(?:ar|ckb|dv|fa|he|ku-Arab|nqo|ps|sd|syr|ug|ur|yi)\b/i;
/** How a language is written. @param {string} tag */
export const directionOf = (tag) => (FROM_RIGHT.test(tag) ? "rtl" : "ltr");

/** Made when they are first needed: a page can begin without. @type {Map<number|"", Intl.NumberFormat>} */
const numbers = new Map();
/** @type {Intl.PluralRules} */
let plurals;

/** A number as it is written in the language of the page; `digits` is how many follow its point, where that is fixed. */
export function numeral(value, digits) {
  const key = digits ?? "";
  if (!numbers.has(key)) numbers.set(key, new Intl.NumberFormat(language(), { minimumFractionDigits: digits, maximumFractionDigits: digits ?? 20 }));
  return numbers.get(key).format(value);
}

/**
 * The text of a key, which is always written out here: a test looks for it in every catalogue.
 * @param {string} key
 * @param {Object<string, any>} [values] what stands for `{name}` in it; `count` chooses the plural form
 */
export function t(key, values) {
  const found = words[key] ?? key;
  if (!values) return found;
  const text = typeof found === "string" ? found : found[(plurals ??= new Intl.PluralRules(language())).select(values.count)] ?? found.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** The same as parts for `h`, where a value may be an element. */
export function parts(key, values) {
  return words[key].split(/\{(\w+)\}/).map((part, index) => (index % 2 ? values[part] : part));
}

const shown = (value) => (typeof value === "number" ? numeral(value) : String(value));

/** A notice of the server, which writes English, in the language of the page where its catalogue has it. @param {string} message */
export function said(message) {
  for (const [english, own] of words.$said ?? []) {
    const names = [...english.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
    const found = new RegExp(`^${english.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "(.*?)")}$`, "s").exec(message);
    if (found) return own.replace(/\{(\w+)\}/g, (_, name) => found[names.indexOf(name) + 1]);
  }
  return message;
}

/** The languages there are, each in its own words. @returns {Object<string, string>} */
export const languages = () => words.$languages ?? {};
