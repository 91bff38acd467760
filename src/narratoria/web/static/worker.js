/*
 * The service worker. When the server does not answer, a page of our own says so and what to do. That page is all it
 * keeps: no story, no answer of the API, no page with anything in it. Its cache is named after its content.
 */
const KEPT = "narratoria-offline-VERSION";
const PAGE = "/static/offline.html";

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(KEPT).then((cache) => cache.add(new Request(PAGE, { cache: "reload" }))));
  // where the browser can, all but navigations pass this worker by, and do not have to wait until it has started
  const others = ["cors", "no-cors", "same-origin"].map((requestMode) => ({ requestMode }));
  event.waitUntil(Promise.resolve(event.addRoutes?.({ condition: { or: others }, source: "network" })).catch(() => {}));
});

addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith("narratoria-offline-") && name !== KEPT) await caches.delete(name);
    await registration.navigationPreload?.enable(); // the server is asked while the worker starts
  })());
});

addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate") event.respondWith(answer(event));
});

async function answer(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    return (await caches.match(PAGE, { cacheName: KEPT })) ?? Response.error();
  }
}
