"""A transcript of a session: Markdown, or one HTML page with its pictures inside."""

from __future__ import annotations

import base64
import html
from typing import Final

from narratoria.events import AssetStored
from narratoria.prose import plain, render
from narratoria.session.assets import AssetStore
from narratoria.store.fold import SessionView, TurnView

_EMBEDDED: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml")
_STYLE: Final = """
:root { color-scheme: light dark; }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; font: 1.1rem/1.6 Georgia, serif; }
.prompt { margin: 2rem 0 1rem; padding-left: 1rem; border-left: .2rem solid #7f67be; font-style: italic; }
.prompt, pre { white-space: pre-wrap; } hr { width: 4rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
figcaption, .choices, .undone { opacity: .7; font-size: .9rem; }
"""


def to_markdown(view: SessionView) -> str:
    """Return the prompts and narration, turn by turn. Text of tools and players is escaped."""
    parts = [f"# {_plain(view.title or view.story or view.session)}"]
    for turn in view.told:
        if turn.prompt:
            parts.append("\n".join(f"> {_plain(line)}" for line in turn.prompt.splitlines() or [""]))
        if turn.narrative:
            parts.append("\n\n".join(_plain(paragraph) for paragraph in turn.narrative.split("\n\n")))
        parts.extend(f"*[{_plain(asset.kind)}: {_plain(_caption(asset))}]*" for asset in turn.assets)
        if turn.choices and turn is view.told[-1]:
            parts.append("\n".join(f"- {_plain(choice)}" for choice in turn.choices))
    return "\n\n".join(parts) + "\n"


def to_html(view: SessionView, assets: AssetStore) -> str:
    """Return one self-contained page: pictures are part of it, and it runs no script."""
    title = html.escape(view.title or view.story or view.session)
    body = "\n".join(_turn(turn, assets, last=turn is view.told[-1]) for turn in view.told)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n{body}\n</html>\n"
    )


def _turn(turn: TurnView, assets: AssetStore, *, last: bool) -> str:
    parts = []
    if turn.prompt:
        parts.append(f'<blockquote class="prompt" dir="auto">{html.escape(turn.prompt)}</blockquote>')
    parts += render(turn.narrative) or [plain(one) for one in turn.narrative.split("\n\n") if one.strip()]
    parts += [_figure(asset, assets) for asset in turn.assets]
    if turn.choices and last:
        offered = "".join(f'<li dir="auto">{html.escape(one)}</li>' for one in turn.choices)
        parts.append(f'<ul class="choices">{offered}</ul>')
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _figure(asset: AssetStored, assets: AssetStore) -> str:
    caption = html.escape(_caption(asset))
    media = asset.media_type.partition(";")[0].strip().lower()
    if media not in _EMBEDDED or asset.hash not in assets:
        return f"<figure><figcaption>{html.escape(asset.kind)}: {caption}</figcaption></figure>"
    data = base64.b64encode(assets.path_of(asset.hash).read_bytes()).decode()
    image = f'<img alt="{caption}" src="data:{media};base64,{data}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _caption(asset: AssetStored) -> str:
    described = (asset.metadata or {}).get("alt") or (asset.metadata or {}).get("title")
    return str(described) if described else asset.asset_id


def _plain(text: str) -> str:
    """Escape Markdown's own characters where they would change the text."""
    for char in "\\`*_{}[]<>#|":
        text = text.replace(char, "\\" + char)
    return text
