/**
 * The one connection a window holds: server-sent events, taken up again after the last record seen.
 *
 * The browser's own reconnection cannot tell a stopped server from a refused cookie, so a broken stream is closed
 * and opened again here, with `?after=` in place of the `Last-Event-ID` header.
 *
 * HTTP/1.1 allows six connections to a host, for all windows together. So a window nobody looks at gives its own
 * back, and where the server has none left for this browser it says `later`: the window asks again, and has a
 * stream as soon as another one leaves.
 */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 2500;
/** A glance at another tab costs nothing. */
const HIDDEN_GRACE = 5_000;
const ASK_AGAIN = 1_000;
/** While the player waits for an answer. */
const ASK_SOON = 200;

export class Stream {
  /**
   * @param {string} session
   * @param {{
   *   after: () => number,
   *   turns: () => number,
   *   waiting: () => boolean,
   *   records: (records: import("./world.js").JournalRecord[]) => void,
   *   snapshot: (snapshot: {records: import("./world.js").JournalRecord[], earlier: number}) => void,
   *   status: (status: "connecting"|"live"|"offline"|"refused"|"expired"|"gone") => void,
   * }} listener
   */
  constructor(session, listener) {
    this.session = session;
    this.listener = listener;
    this.delay = FIRST_DELAY;
    /** @type {EventSource|null} */
    this.source = null;
    this.timer = 0;
    /** What the server said of a session that it does not open. */
    this.reason = "";
    document.addEventListener("visibilitychange", () => this.#visibility());
    // a window that waits for a stream asks those nobody looks at for theirs, and they do not linger
    this.windows = new BroadcastChannel("narratoria-streams");
    this.windows.addEventListener("message", () => document.hidden && this.#rest());
    addEventListener("online", () => this.retryNow());
    this.#open();
  }

  retryNow() {
    if (this.source) return;
    clearTimeout(this.timer);
    this.#open();
  }

  /** Forget what was seen, and begin with as many turns as are asked for now. */
  restart() {
    clearTimeout(this.timer);
    this.#close();
    this.#open(true);
  }

  #open(anew = false) {
    const after = this.listener.after();
    const seen = after && !anew ? `&after=${after}` : "";
    const { earlyStream } = window;
    delete window.earlyStream;
    const once = document.hidden ? "&once=1" : "";
    const query = `turns=${this.listener.turns()}${seen}${once}&browser=${window.browserName}`;
    const source = earlyStream?.source ?? new EventSource(`/sessions/${encodeURIComponent(this.session)}/events?${query}`);
    this.source = source;
    const handlers = {
      open: () => {
        this.delay = FIRST_DELAY;
        this.listener.status("live");
      },
      message: (message) => this.listener.records(JSON.parse(message.data)),
      snapshot: (message) => this.listener.snapshot(JSON.parse(message.data)),
      later: () => this.#later(),
      error: () => this.#broken(),
    };
    for (const [type, handle] of Object.entries(handlers)) source.addEventListener(type, (event) => this.source === source && handle(event));
    earlyStream?.taken.abort();
    for (const event of earlyStream?.missed ?? []) if (this.source === source) handlers[event.type](event);
  }

  #close() {
    this.source?.close();
    this.source = null;
  }

  #later() {
    this.#close();
    clearTimeout(this.timer);
    if (document.hidden) return;
    this.windows.postMessage("a stream is wanted");
    this.timer = setTimeout(() => this.#open(), this.listener.waiting() ? ASK_SOON : ASK_AGAIN);
  }

  async #broken() {
    this.#close();
    const status = await this.#diagnose();
    this.listener.status(status);
    if (status === "gone" || this.source) return;
    this.timer = setTimeout(() => this.#open(), this.delay * (0.75 + Math.random() / 2));
    this.delay = Math.min(LONGEST_DELAY, this.delay * 2);
  }

  /** An EventSource does not tell why it failed; the same question asked once does. */
  async #diagnose() {
    try {
      const response = await fetch(`/sessions/${encodeURIComponent(this.session)}/events?turns=1&once=1`, { cache: "no-store" });
      if (response.status === 401 || response.status === 403) return "expired";
      if (response.ok) return "offline";
      const problem = await response.json();
      this.reason = problem.error === "not_found" ? "" : problem.message ?? ""; // a session that is there, and cannot be opened
      if (response.status === 404) return "gone";
      return this.reason ? "refused" : "offline";
    } catch {
      return "offline";
    }
  }

  #rest() {
    clearTimeout(this.timer);
    this.#close();
  }

  #visibility() {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = setTimeout(() => this.#rest(), HIDDEN_GRACE);
    else this.retryNow();
  }
}
