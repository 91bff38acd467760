"""A transcript of a session: Markdown, or one HTML page with its pictures inside."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Final

from narratoria.events import AssetStored
from narratoria.prose import plain, render
from narratoria.session.assets import AssetStore
from narratoria.store.session_views import SessionView, TurnView

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
    parts = [f"# {_plain(title_of(view))}"]
    for turn in view.told:
        if turn.prompt:
            parts.append("\n".join(f"> {_plain(line)}" for line in turn.prompt.splitlines() or [""]))
        if turn.narrative:
            parts.append("\n\n".join(_plain(paragraph) for paragraph in turn.narrative.split("\n\n")))
        parts.extend(f"*[{_plain(asset.kind)}: {_plain(caption_of(asset))}]*" for asset in turn.assets)
        if turn.choices and turn is view.told[-1]:
            parts.append("\n".join(f"- {_plain(choice)}" for choice in turn.choices))
    return "\n\n".join(parts) + "\n"


def to_html(view: SessionView, assets: AssetStore) -> str:
    """Return one self-contained page: pictures are part of it, and it runs no script."""
    title = html.escape(title_of(view))

    def figure(asset: AssetStored) -> str:
        return _figure(asset, assets)

    body = "\n".join(turn_html(turn, figure, last=turn is view.told[-1]) for turn in view.told)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n{body}\n</html>\n"
    )


def title_of(view: SessionView) -> str:
    """Return the name of a session for people."""
    return view.title or view.story or view.session


def turn_html(turn: TurnView, figure: Callable[[AssetStored], str], *, last: bool) -> str:
    """Return a turn as one section of safe HTML. `figure` shows an asset; choices are shown with the last turn."""
    parts = []
    if turn.prompt:
        parts.append(f'<blockquote class="prompt" dir="auto">{html.escape(turn.prompt)}</blockquote>')
    parts += render(turn.narrative) or [plain(one) for one in turn.narrative.split("\n\n") if one.strip()]
    parts += [figure(asset) for asset in turn.assets]
    if turn.choices and last:
        offered = "".join(f'<li dir="auto">{html.escape(one)}</li>' for one in turn.choices)
        parts.append(f'<ul class="choices">{offered}</ul>')
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _figure(asset: AssetStored, assets: AssetStore) -> str:
    caption = html.escape(caption_of(asset))
    if not is_picture(asset, assets):
        return f"<figure><figcaption>{html.escape(asset.kind)}: {caption}</figcaption></figure>"
    data = base64.b64encode(assets.path_of(asset.hash).read_bytes()).decode()
    image = f'<img alt="{caption}" src="data:{media_of(asset)};base64,{data}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def media_of(asset: AssetStored) -> str:
    """Return the media type of an asset, without parameters."""
    return asset.media_type.partition(";")[0].strip().lower()


def is_picture(asset: AssetStored, assets: AssetStore) -> bool:
    """Tell if an asset is a picture that is there."""
    return media_of(asset) in _EMBEDDED and asset.hash in assets


def caption_of(asset: AssetStored) -> str:
    """Return what an asset shows, in the words of its tool, or its id."""
    described = (asset.metadata or {}).get("alt") or (asset.metadata or {}).get("title")
    return str(described) if described else asset.asset_id


def _plain(text: str) -> str:
    """Escape Markdown's own characters where they would change the text."""
    for char in "\\`*_{}[]<>#|":
        text = text.replace(char, "\\" + char)
    return text
