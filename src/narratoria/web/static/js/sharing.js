/** Links by which the player of a session shares it, on a server where players have accounts. */
import { api } from "./api.js";
import { copyText } from "./callparts.js";
import { h } from "./dom.js";
import { t } from "./words.js";

const KINDS = { read: t("share.read"), play: t("share.play") };

/** @param {import("./game.js").Game} game @param {{fail: (error: Error) => void}} note */
export function sharing(game, note) {
  const list = h("div", {});
  const section = h("section", { hidden: true }, h("h3", { text: t("share.title") }), h("p", { class: "quiet", text: t("share.note") }), list,
    h("div", { class: "setting" }, ...Object.entries(KINDS).map(([access, text]) => h("button", { class: "button tonal", text, on: { click: () => make(access) } }))));
  const shown = async () => {
    list.replaceChildren(...(await api.shares(game.id)).map(row));
    section.hidden = false;
  };
  const attempt = (act) => act().catch((error) => note.fail(error));
  const make = (access) => attempt(async () => {
    const { path } = await api.share(game.id, access);
    await shown();
    const field = h("input", { class: "field", readonly: true, value: new URL(path, location.href).href, "aria-label": t("share.address") });
    const copy = h("button", { class: "button text", text: t("page.copy"), on: { click: () => copyText(field.value, t("share.copied"), field) } });
    list.prepend(h("p", { class: "quiet", text: t("share.once") }), h("div", { class: "setting" }, field, copy));
    field.select();
  });
  const row = ({ id, access }) => h("div", { class: "setting" }, h("span", { text: KINDS[access] ?? access }),
    h("button", { class: "button text", text: t("share.revoke"), on: { click: () => attempt(async () => { await api.unshare(game.id, id); await shown(); }) } }));
  shown().catch(() => section.remove()); // one's own machine, or another player's session
  return section;
}
