/** Registers the service worker, which says in plain words that the server does not run; with it the page is an app that can be installed. */
const WORKER = "/service-worker.js";

/** Nothing of a story hangs on it: it comes when there is nothing else to do, and where a browser refuses it all is as before. */
export function registerWorker() {
  if (!navigator.serviceWorker) return;
  const idle = () => (window.requestIdleCallback ?? setTimeout)(register);
  if (document.readyState === "complete") idle();
  else addEventListener("load", idle, { once: true });
}

async function register() {
  // the policy of the page (`trusted-types`) lets this one address be run, whatever it is asked for
  const trust = window.trustedTypes?.createPolicy("worker", { createScriptURL: () => WORKER });
  await navigator.serviceWorker.register(trust?.createScriptURL("") ?? WORKER).catch(() => {});
}
