/** One asset as an element: in the story, in the gallery and in the lightbox alike. */
import { api } from "./api.js";
import { fileSize, h } from "./dom.js";
import { icon } from "./icons.js";

/** What a browser shows in <img> without running anything; SVG is inert there. */
const IMAGES = /^image\/(png|jpeg|gif|webp|avif|svg\+xml|bmp)$/;
const AUDIO = /^audio\//;
const VIDEO = /^video\//;
const SMALL = 200;

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
    default: return placeholder(asset, url, title, "This page cannot show this kind of file; it can be saved.");
  }
}

function image(asset, url, title, open) {
  const alt = typeof asset.metadata?.alt === "string" ? asset.metadata.alt : title;
  const picture = h("img", { src: url, alt, loading: "lazy", decoding: "async" });
  const { width, height } = asset.metadata ?? {};
  // the space is kept before the picture is there: nothing jumps
  if (width > 0 && height > 0) Object.assign(picture, { width, height });
  // a tiny picture blown up to the width of the page is no pleasure
  picture.addEventListener("load", () => picture.classList.toggle("small", picture.naturalWidth < SMALL));
  picture.addEventListener("error", () => broken(picture, asset, url, title));
  if (!open) return picture;
  return h("button", { class: "picture", "aria-label": `Enlarge: ${title}`, on: { click: () => open(asset) } }, picture);
}

function player(tag, asset, url, title) {
  const element = h(tag, { src: url, controls: true, preload: "metadata", "aria-label": title });
  element.addEventListener("error", () => broken(element, asset, url, title));
  return element;
}

function broken(element, asset, url, title) {
  const place = element.closest(".picture") ?? element;
  place.replaceWith(placeholder(asset, url, title, "This file could not be shown; it may be damaged."));
}

function placeholder(asset, url, title, reason) {
  return h("div", { class: "placeholder" },
    icon(kindOf(asset) === "other" ? "file" : "warn"),
    h("div", {},
      h("strong", { text: title, dir: "auto" }),
      h("p", { text: `${asset.mediaType} · ${fileSize(asset.size)}` }),
      h("p", { class: "quiet", text: reason }),
      h("a", { class: "button text", href: url, download: asset.name || asset.assetId }, icon("download"), "Save file")));
}

/** The lightbox: a picture as large as the window, with what is known about it. */
export function openLightbox(asset) {
  const rows = Object.entries({
    File: asset.name || asset.assetId, Type: asset.mediaType, Size: fileSize(asset.size), Turn: asset.turn || "before the first",
    ...asset.metadata,
  }).map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: typeof value === "object" ? JSON.stringify(value) : String(value), dir: "auto" })));
  const close = h("button", { class: "icon-button", "aria-label": "Close picture" }, icon("close"));
  const dialog = h("dialog", { class: "lightbox", "aria-label": titleOf(asset) },
    h("div", { class: "lightbox-stage" }, media(asset)),
    h("aside", {}, h("h2", { text: titleOf(asset), dir: "auto" }), h("dl", { class: "facts" }, ...rows)), close);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.classList.contains("lightbox-stage")) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
