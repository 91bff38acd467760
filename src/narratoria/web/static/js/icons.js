/** Our own line icons, 24 × 24, drawn with the current text colour. */
import { s } from "./dom.js";

const PATHS = {
  book: "M12 6.5C10 5 7 4.5 3.5 5v13c3.5-.5 6.5 0 8.5 1.5 2-1.5 5-2 8.5-1.5V5C17 4.5 14 5 12 6.5zM12 6.5v13",
  wrench: "M20.3 7 17.4 9.9l-2.5-.8-.8-2.5 2.9-2.9a5 5 0 0 0-6.5 6.5L4.2 16.5a2.3 2.3 0 0 0 3.3 3.3l6.3-6.3A5 5 0 0 0 20.3 7z",
  image: "M4 5h16v14H4zM4 16l4.5-5 4 4.5 2.5-2.5 5 5M15.5 9.5h.01",
  tree: "M4 3.5h6v4H4zM7 7.5v8.5a2 2 0 0 0 2 2h4M7 11.5h6M13.5 9.5h6.5v4h-6.5zM13.5 16h6.5v4h-6.5z",
  send: "M4 12 20 4.5 15.5 20l-4-6.5zM11.5 13.5 20 4.5",
  stop: "M7 7h10v10H7z",
  undo: "M8.5 5 4 9.5 8.5 14M4 9.5h9.5a5 5 0 0 1 0 10H9",
  redo: "M15.5 5 20 9.5 15.5 14M20 9.5h-9.5a5 5 0 0 0 0 10H15",
  retry: "M19 12a7 7 0 1 1-2.2-5.1M19.5 3.5V8H15",
  branch: "M7 5v14M7 13c0-3 10-2 10-6M7 3.5v.01M5 5a2 2 0 1 0 4 0 2 2 0 1 0-4 0M15 5.5a2 2 0 1 0 4 0 2 2 0 1 0-4 0M5 19a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  sliders: "M4 7h9M17 7h3M4 17h3M11 17h9M13 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M7 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  home: "M4 11 12 4.5 20 11M6 9.5V19.5h12V9.5M10 19.5V14h4v5.5",
  back: "M19 12H5M11 5.5 4.5 12 11 18.5",
  down: "M12 5v14M5.5 12.5 12 19l6.5-6.5",
  chevron: "M9 5.5 15.5 12 9 18.5",
  "back-chevron": "M15 5.5 8.5 12 15 18.5",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h11v11H9zM5.5 15H4V4h11v1.5",
  search: "M4.5 10.5a6 6 0 1 0 12 0 6 6 0 1 0-12 0M15 15l5 5",
  download: "M12 4v11M7 10.5 12 15.5l5-5M5 19.5h14",
  upload: "M12 16V5M7 9.5 12 4.5l5 5M5 19.5h14",
  more: "M12 5.5v.01M12 12v.01M12 18.5v.01",
  warn: "M12 4.5 21 19.5H3zM12 10v4.5M12 17v.01",
  error: "M8.5 3.5h7l5 5v7l-5 5h-7l-5-5v-7zM9.5 9.5l5 5M14.5 9.5l-5 5",
  info: "M4 12a8 8 0 1 0 16 0 8 8 0 1 0-16 0M12 11.5V16M12 8v.01",
  check: "M5 12.5 10 17.5 19 7",
  skip: "M5 12h14M13.5 6.5 19 12l-5.5 5.5",
  hourglass: "M7 4h10M7 20h10M8 4c0 5 3 5.500 4 8 1-2.500 4-3 4-8M8 20c0-5 3-5.500 4-8 1 2.500 4 3 4 8",
  flag: "M6 20.5V4M6 4.5h11.5l-3 4 3 4H6",
  clock: "M4 12a8 8 0 1 0 16 0 8 8 0 1 0-16 0M12 7.5V12l3 2",
  edit: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 12.5h8L17 7M10.5 10.5v5.5M13.5 10.5v5.5",
  file: "M6 3.5h8l4 4v13H6zM14 3.5v4h4",
  sound: "M5 10v4h3.5l4.5 4V6l-4.5 4zM16 9.5a4 4 0 0 1 0 5M18.5 7a7.5 7.5 0 0 1 0 10",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  muted: "M5 10v4h3.5l4.5 4V6l-4.5 4zM16.5 9.5l5 5M21.5 9.5l-5 5",
  full: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  map: "M4 6.5 9 4.5l6 2 5-2v13l-5 2-6-2-5 2zM9 4.5v13M15 6.5v13",
  speak: "M4 5h16v11H10l-4 4v-4H4zM8 9h8M8 12h5",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 10h4M4 14h4M16 10h4M16 14h4",
  spark: "M12 4l1.8 6.2L20 12l-6.2 1.8L12 20l-1.8-6.2L4 12l6.2-1.8z",
  bookmark: "M7 4h10v16l-5-4-5 4z",
  pin: "M9 4h6l-1 6 3.5 3v2h-11v-2l3.5-3zM12 15v5.500",
  plus: "M12 5v14M5 12h14",
  plug: "M9 4v4M15 4v4M6.5 8h11v3.5a5.5 5.5 0 0 1-11 0zM12 17v3.5",
};

/** @param {keyof typeof PATHS} name */
export function icon(name) {
  const path = s("path", { d: PATHS[name] });
  return s("svg", { class: `icon icon-${name}`, viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, path);
}
