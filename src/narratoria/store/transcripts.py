"""The forms in which a session can be read elsewhere: Markdown, a page, a book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from narratoria.session.assets import AssetStore
from narratoria.store.epub import MIMETYPE, to_epub
from narratoria.store.session_views import SessionView
from narratoria.store.transcript import to_html, to_markdown


class Transcript(NamedTuple):
    """One form: the ending of its files, its media type, and what makes it."""

    ending: str
    media_type: str
    make: Callable[[SessionView, AssetStore], bytes]


TRANSCRIPTS: Final = {
    "markdown": Transcript(".md", "text/markdown; charset=utf-8", lambda view, _: to_markdown(view).encode()),
    "html": Transcript(
        ".html", "text/html; charset=utf-8", lambda view, assets: to_html(view, assets).encode()
    ),
    "epub": Transcript(".epub", MIMETYPE, to_epub),
}
"""By the name that `--format` and `?format=` take."""
