/** One asset as an element: in the story, in the gallery and in the lightbox alike. */
import { api } from "./api.js";
import { clockTime, fileSize, h } from "./dom.js";
import { icon } from "./icons.js";
import { makePlayer } from "./player.js";
import { fromRight, t } from "./words.js";

/** What a browser shows in <img> without running anything; SVG is inert there. */
const IMAGES = /^image\/(png|jpeg|gif|webp|avif|svg\+xml|bmp)$/;
const AUDIO = /^audio\//;
const VIDEO = /^video\//;
const SMALL = 200;
/** Pixels of a picture to one of the page: screens have that many. */
const SHARP = 2;
/** The least width, in pixels of the page, at which a picture is shown that has the pixels for it. */
const LEAST = 320;

/** @returns {"image"|"audio"|"video"|"other"} */
export function kindOf(asset) {
  if (IMAGES.test(asset.mediaType)) return "image";
  if (AUDIO.test(asset.mediaType)) return "audio";
  return VIDEO.test(asset.mediaType) ? "video" : "other";
}

export function titleOf(asset) {
  const { title, caption, alt } = asset.metadata ?? {};
  return [title, caption, alt].find((text) => typeof text === "string" && text) ?? (asset.name || asset.assetId);
}

/** @param {any} asset @param {(asset: any) => void} [open] called when an image is to be seen large */
export function media(asset, open) {
  const url = api.assetUrl(asset.hash);
  const title = titleOf(asset);
  switch (kindOf(asset)) {
    case "image": return image(asset, url, title, open);
    case "audio": return player("audio", asset, url, title);
    case "video": return player("video", asset, url, title);
    default: return placeholder(asset, url, title, t("media.unknown"));
  }
}

function image(asset, url, title, open) {
  const alt = typeof asset.metadata?.alt === "string" ? asset.metadata.alt : title;
  const picture = h("img", { src: url, alt, loading: "lazy", decoding: "async" });
  // a tiny picture blown up to the width of the page is no pleasure
  picture.addEventListener("load", () => picture.classList.toggle("small", picture.naturalWidth < SMALL));
  picture.addEventListener("error", () => broken(picture, asset, url, title));
  if (!open) return fit(picture, picture, asset);
  const button = h("button", { class: "picture", "aria-label": t("media.enlarge", { title }), on: { click: () => open(asset) } }, picture);
  fit(button, picture, asset);
  button.asset = asset;
  return button;
}

/** The space is kept before a picture is there, and nothing jumps; it is shown no larger than it is sharp. */
function fit(frame, element, asset) {
  const { width, height } = asset.metadata ?? {};
  if (!(width > 0 && height > 0)) return frame;
  for (const [name, value] of Object.entries({ width, height })) element.setAttribute(name, String(value));
  frame.style.setProperty("--ratio", String(width / height));
  if (asset.mediaType !== "image/svg+xml") frame.style.setProperty("--shown", `${Math.max(LEAST, Math.round(width / SHARP))}px`);
  return frame;
}

function player(tag, asset, url, title) {
  const { node, element } = makePlayer(tag, { url, title, loop: asset.metadata?.loop === true });
  if (tag === "video") fit(node, element, asset);
  element.addEventListener("error", () => broken(node, asset, url, title));
  return node;
}

function broken(element, asset, url, title) {
  const place = element.closest(".picture") ?? element;
  place.replaceWith(placeholder(asset, url, title, t("media.broken")));
}

function placeholder(asset, url, title, reason) {
  return h("div", { class: "placeholder" },
    icon(kindOf(asset) === "other" ? "file" : "warn"),
    h("div", {},
      h("strong", { text: title, dir: "auto" }),
      h("p", { text: `${asset.mediaType} · ${fileSize(asset.size)}` }),
      h("p", { class: "quiet", text: reason }),
      h("a", { class: "button text", href: url, download: asset.name || asset.assetId }, icon("download"), t("media.save_file"))));
}

/** The lightbox: a picture as large as the window, with what is known about it; arrows go on to its neighbours. */
export function openLightbox(asset) {
  const pictures = [...document.querySelectorAll("main .picture")].filter((button) => button.checkVisibility());
  const stage = h("div", { class: "lightbox-stage" });
  const about = h("aside", {});
  const step = (by) => {
    const at = pictures.findIndex((button) => button.asset === shown);
    if (at >= 0 && pictures.length > 1) show(pictures[(at + by + pictures.length) % pictures.length].asset);
  };
  const button = (label, symbol, run, extra = "") => h("button", { class: `icon-button ${extra}`, "aria-label": label, on: { click: run } }, icon(symbol));
  const dialog = h("dialog", { class: "lightbox" }, stage, about, button(t("media.close"), "close", () => dialog.close(), "close"),
    ...(pictures.length > 1 ? [button(t("media.previous"), "chevron", () => step(-1), "previous"), button(t("media.next"), "chevron", () => step(1), "next")] : []));
  let shown = asset;
  const show = (one) => {
    shown = one;
    const title = titleOf(one);
    dialog.setAttribute("aria-label", title);
    stage.replaceChildren(media(one));
    const place = pictures.findIndex((other) => other.asset === one) + 1;
    about.replaceChildren(h("h2", { text: title, dir: "auto" }),
      h("div", { class: "lightbox-actions" }, h("a", { class: "button tonal", href: api.assetUrl(one.hash), download: one.name || one.assetId }, icon("download"), h("span", { text: t("media.save") })),
        place && pictures.length > 1 ? h("span", { role: "status", text: t("media.place", { place, total: pictures.length }) }) : ""),
      h("dl", { class: "facts" }, ...facts(one).map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value, dir: "auto" })))));
  };
  show(asset);
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") step((event.key === "ArrowLeft") === fromRight() ? 1 : -1);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target === stage) dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    pictures.find((one) => one.asset === shown)?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** What is known of an asset, in words; what is its title already is not said twice. */
export function facts(asset) {
  const { width, height, title, caption, alt, ...rest } = asset.metadata ?? {};
  const known = [[t("media.file"), asset.name || asset.assetId], [t("media.kind"), asset.kind], [t("media.type"), asset.mediaType], [t("media.size"), asset.size === undefined ? "" : fileSize(asset.size)]];
  if (width > 0 && height > 0) known.push([t("media.dimensions"), `${width} × ${height}`]);
  if (asset.turn !== undefined) known.push([t("media.turn"), asset.turn || t("media.before_first")], [t("media.made"), asset.ts ? clockTime(asset.ts) : ""]);
  for (const [name, text] of [[t("media.caption"), caption], [t("media.description"), alt]]) if (text !== titleOf(asset)) known.push([name, text]);
  return [...known, ...Object.entries(rest)].filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => [name[0].toUpperCase() + name.slice(1), typeof value === "object" ? JSON.stringify(value) : String(value)]);
}
