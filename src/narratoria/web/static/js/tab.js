/** What this tab remembers across a reload: words not sent yet, notices put away. */

/** @param {string} key @returns {any} */
export function recall(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key @param {any} value nothing is kept of what is empty */
export function remember(key, value) {
  try {
    if (value?.length) sessionStorage.setItem(key, JSON.stringify(value));
    else sessionStorage.removeItem(key);
  } catch {
    // a private window may refuse storage: a reload then forgets
  }
}
