"""A session as an EPUB 3 book: a chapter for every twenty-five turns, and its pictures."""

from __future__ import annotations

import html
import io
import re
import uuid
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from narratoria.events import AssetStored
from narratoria.session.assets import AssetStore
from narratoria.store.session_views import SessionView, TurnView
from narratoria.store.transcript import caption_of, is_picture, media_of, title_of, turn_html

TURNS_PER_CHAPTER: Final = 25
MIMETYPE: Final = "application/epub+zip"
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VOID: Final = re.compile(r"<(br|hr)>")
_STYLE: Final = """
body { line-height: 1.5; } img { max-width: 100%; height: auto; } figure { margin: 1.5em 0; }
.prompt { margin: 2em 0 1em; padding-left: 1em; border-left: .2em solid #7f67be; font-style: italic; }
.prompt, pre { white-space: pre-wrap; } figcaption, .choices { font-size: .9em; }
"""
_CONTAINER: Final = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""


def to_epub(view: SessionView, assets: AssetStore) -> bytes:
    """Return the session as a book. It runs no script, and text of tools and players is escaped."""
    pictures: dict[str, AssetStored] = {}

    def figure(asset: AssetStored) -> str:
        caption = html.escape(caption_of(asset))
        if not is_picture(asset, assets):
            return f"<figure><figcaption>{html.escape(asset.kind)}: {caption}</figcaption></figure>"
        pictures[asset.hash] = asset
        image = f'<img alt="{caption}" src="{_picture_name(asset)}"/>'
        return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"

    told = view.told
    starts = range(0, len(told), TURNS_PER_CHAPTER)
    chapters = [_chapter(told[start : start + TURNS_PER_CHAPTER], told[-1], figure) for start in starts]
    title = html.escape(title_of(view))
    files = {"style.css": _STYLE, "nav.xhtml": _contents(title, [name for name, _ in chapters])}
    for number, (name, body) in enumerate(chapters, 1):
        heading = f"<h1>{title}</h1>\n" if number == 1 else ""
        files[f"chapter-{number}.xhtml"] = _page(name, f"{heading}<h2>{html.escape(name)}</h2>\n{body}")
    files["book.opf"] = _package(view.session, title, len(chapters), [*pictures.values()])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", MIMETYPE, zipfile.ZIP_STORED)  # readers expect it first, and not packed
        book.writestr("META-INF/container.xml", _CONTAINER)
        for name, text in files.items():
            book.writestr(name, text)
        for asset in pictures.values():
            book.writestr(_picture_name(asset), assets.path_of(asset.hash).read_bytes(), zipfile.ZIP_STORED)
    return packed.getvalue()


def _chapter(
    turns: list[TurnView], newest: TurnView, figure: Callable[[AssetStored], str]
) -> tuple[str, str]:
    """Return the name and the body of a chapter."""
    first, last = turns[0].turn, turns[-1].turn
    name = "The beginning" if last == 0 else f"To turn {last}" if first == 0 else f"Turns {first} to {last}"
    return name, "\n".join(turn_html(turn, figure, last=turn is newest) for turn in turns)


def _page(title: str, body: str) -> str:
    """Return a page as XML: HTML leaves elements open and knows entities that XML does not."""
    body = _VOID.sub(r"<\1/>", body).replace("&nbsp;", "&#160;")
    page = (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">\n'
        f'<head><title>{html.escape(title)}</title><link rel="stylesheet" href="style.css"/></head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )
    return _NOT_XML.sub("�", page)


def _contents(title: str, chapters: list[str]) -> str:
    entries = "".join(
        f'<li><a href="chapter-{number}.xhtml">{html.escape(name)}</a></li>'
        for number, name in enumerate(chapters, 1)
    )
    return _page("Contents", f'<nav epub:type="toc"><h1>{title}</h1><ol>{entries}</ol></nav>')


def _package(session: str, title: str, chapters: int, pictures: list[AssetStored]) -> str:
    numbers = range(1, chapters + 1)
    listed = [
        f'<item id="c{n}" href="chapter-{n}.xhtml" media-type="application/xhtml+xml"/>' for n in numbers
    ]
    listed += [
        f'<item id="p{n}" href="{_picture_name(asset)}" media-type="{media_of(asset)}"/>'
        for n, asset in enumerate(pictures, 1)
    ]
    spine = "".join(f'<itemref idref="c{number}"/>' for number in numbers)
    identifier = uuid.uuid5(uuid.NAMESPACE_URL, f"narratoria:{session}")
    modified = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">\n'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier><dc:title>{title}</dc:title>'
        f'<dc:language>en</dc:language><meta property="dcterms:modified">{modified}</meta></metadata>\n'
        '<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        f'<item id="style" href="style.css" media-type="text/css"/>{"".join(listed)}</manifest>\n'
        f"<spine>{spine}</spine>\n</package>\n"
    )
    return _NOT_XML.sub("�", text)


def _picture_name(asset: AssetStored) -> str:
    return f"{asset.hash.rpartition(':')[2]}.{media_of(asset).partition('/')[2].partition('+')[0]}"
