/** Which page this is: `/` is the library, `/play/<session>` a story; `/settings` opens the dialog on the library. */
import { decodePart, h } from "./dom.js";
import { Game } from "./game.js";
import { icon } from "./icons.js";
import { Shell } from "./shell.js";
import { t } from "./words.js";

const root = document.getElementById("app");
const session = /^\/play\/([^/]+)\/?$/.exec(location.pathname)?.[1];

if (session) {
  const game = new Game(decodePart(session));
  const shell = new Shell(game);
  game.start(window.storySoFar);
  shell.mount(root, window.storySoFar);
} else openLibrary();

async function openLibrary() {
  const { LibraryView, openSettings, registerWorker } = await import("./later.js");
  const library = new LibraryView();
  const settings = h("button", { class: "icon-button", "aria-label": t("settings.title"), on: { click: () => openSettings(null) } }, icon("sliders"));
  root.classList.add("no-rail");
  root.replaceChildren(h("div", { class: "stage" }, h("header", { class: "bar" }, h("span", { class: "bar-title" }), settings), h("main", { id: "main" }, library.node)));
  library.load();
  registerWorker();
  if (location.pathname === "/settings") openSettings(null);
}
