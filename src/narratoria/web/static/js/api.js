/** The server's API, with errors a person can read. */
import { t } from "./words.js";

export class ApiError extends Error {
  constructor(message, status, suggestions = []) {
    super(message);
    this.status = status;
    /** @type {string[]} */
    this.suggestions = suggestions;
  }
}

async function call(method, path, body, headers = {}, signal = undefined) {
  const raw = body instanceof Blob;
  const init = { method, headers, signal, body: raw ? body : body === undefined ? undefined : JSON.stringify(body) };
  if (body !== undefined && !raw) init.headers = { ...headers, "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(path, init);
  } catch {
    if (signal?.aborted) throw new ApiError(t("api.stopped"), 0);
    throw new ApiError(t("api.no_answer"), 0);
  }
  if (response.ok) return response.status === 204 ? null : response.json(); // a body left unread is logged as a failed request
  const problem = await response.json().catch(() => ({}));
  const message = problem.message ?? problem.error ?? t("api.status", { status: response.status, asked: `${method} ${path}` });
  throw new ApiError(message, response.status, problem.suggestions);
}

const at = (id) => `/sessions/${encodeURIComponent(id)}`;

const named = (name, turn) => `call=${encodeURIComponent(name)}${turn === null || turn === undefined ? "" : `&turn=${turn}`}`;

export const api = {
  me: () => call("GET", "/me"),
  signOut: () => call("POST", "/sign-out"),
  shares: (id) => call("GET", `${at(id)}/shares`),
  share: (id, access) => call("POST", `${at(id)}/shares`, { access }),
  unshare: (id, share) => call("DELETE", `${at(id)}/shares/${encodeURIComponent(share)}`),
  stories: () => call("GET", "/stories"),
  sessions: () => call("GET", "/sessions"),
  create: (story) => call("POST", "/sessions", { story }),
  session: (id) => call("GET", at(id)),
  rename: (id, title) => call("PATCH", at(id), { title }),
  remove: (id) => call("DELETE", at(id)),
  importFile: (file) => call("POST", "/import", file, { "Content-Type": "application/octet-stream" }),
  exportUrl: (id, format) => `${at(id)}/export${format ? `?format=${format}` : ""}`,
  assetUrl: (hash) => `/assets/${encodeURIComponent(hash)}`,
  prompt: (id, prompt, origin) => call("POST", `${at(id)}/prompt`, { prompt, origin }),
  goOn: (id) => call("POST", `${at(id)}/continue`, {}),
  cancel: (id) => call("POST", `${at(id)}/cancel`, {}),
  answer: (id, question, answer) => call("POST", `${at(id)}/approvals/${encodeURIComponent(question)}`, answer),
  previewUndo: (id, to) => call("GET", `${at(id)}/undo${to === undefined ? "" : `?to=${to}`}`),
  undo: (id, to) => call("POST", `${at(id)}/undo`, { to }),
  redo: (id, to) => call("POST", `${at(id)}/redo`, { to }),
  retry: (id, to, prompt) => call("POST", `${at(id)}/retry`, { to, prompt }),
  showVariant: (id, turn) => call("POST", `${at(id)}/variant`, { turn }),
  editNarration: (id, turn, text) => call("PUT", `${at(id)}/narration`, { turn, text }),
  branch: (id, point = {}) => call("POST", `${at(id)}/branch`, point),
  checkpoint: (id, name) => call("POST", `${at(id)}/checkpoints`, { name }),
  previewRestore: (id, name) => call("GET", `${at(id)}/restore?checkpoint=${encodeURIComponent(name)}`),
  restore: (id, checkpoint) => call("POST", `${at(id)}/restore`, { checkpoint }),
  call: (id, name, turn) => call("GET", `${at(id)}/call?${named(name, turn)}`),
  callEvents: (id, name, turn, first, most) => call("GET", `${at(id)}/call/events?${named(name, turn)}&first=${first}&most=${most}`),
  runCall: (id, asked, signal) => call("POST", `${at(id)}/call/run`, asked, {}, signal),
  assets: (id, before, most) => call("GET", `${at(id)}/assets?before=${before}&most=${most}`),
  find: (id, words, before, most, signal) => call("GET", `${at(id)}/find?words=${encodeURIComponent(words)}&most=${most}${before === undefined ? "" : `&before=${before}`}`, undefined, {}, signal),
  memory: (id) => call("GET", `${at(id)}/memory`),
  changeMemory: (id, asked) => call("POST", `${at(id)}/memory`, asked),
  undoMemory: (id, edit) => call("POST", `${at(id)}/memory/undo`, { edit }),
  importLore: (id, file) => call("POST", `${at(id)}/memory/import?name=${encodeURIComponent(file.name)}`, file, { "Content-Type": "application/octet-stream" }),
  panel: (id) => call("GET", `${at(id)}/panel`),
  tools: (id) => call("GET", `${at(id)}/tools`),
  settings: (id) => call("GET", `${at(id)}/settings`),
  model: () => call("GET", "/model"),
  saveModel: (model) => call("PUT", "/model", model),
  forgetModel: () => call("DELETE", "/model"),
  findModels: () => call("POST", "/model/find", {}),
  listModels: (server) => call("POST", "/model/list", server),
  testModel: (server) => call("POST", "/model/test", server),
  saveSettings: (id, settings) => call("PUT", `${at(id)}/settings`, settings),
};
