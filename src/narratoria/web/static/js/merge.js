/** State as values: merge a patch, tell two states apart. Nothing here changes its arguments. */

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * RFC 7396. Only the touched path is copied, so a state kept from an earlier turn costs almost nothing.
 * @param {any} target
 * @param {any} patch
 */
export function merge(target, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else put(result, key, merge(Object.hasOwn(result, key) ? result[key] : undefined, value));
  }
  return result;
}

/** `result["__proto__"] = …` would change the prototype instead of adding a key. */
function put(object, key, value) {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  else object[key] = value;
}

/**
 * @typedef {{path: string[], kind: "added"|"removed"|"changed", before: any, after: any}} Difference
 * @param {any} before
 * @param {any} after
 * @returns {Difference[]}
 */
export function diff(before, after, path = [], found = []) {
  if (before === after) return found;
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [inBefore, inAfter] = [Object.hasOwn(before, key), Object.hasOwn(after, key)];
      if (!inBefore) found.push({ path: [...path, key], kind: "added", before: undefined, after: after[key] });
      else if (!inAfter) found.push({ path: [...path, key], kind: "removed", before: before[key], after: undefined });
      else diff(before[key], after[key], [...path, key], found);
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    found.push({ path, kind: "changed", before, after });
  }
  return found;
}

/** The paths a patch speaks of, as keys of a set: every object on the way, and every leaf. */
export function touched(patch, prefix = "", found = new Set()) {
  for (const [key, value] of Object.entries(patch)) {
    const path = `${prefix}/${pointer(key)}`;
    found.add(path);
    if (isObject(value)) touched(value, path, found);
  }
  return found;
}

/** RFC 6901 escaping: one string per path, no two paths alike. */
export const pointer = (key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1");

export { isObject };
