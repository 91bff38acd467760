"""Media types of files, by their first bytes, and the check of the type that a tool names."""

from __future__ import annotations

import re
from typing import Final

HEAD_BYTES: Final = 4096
"""Number of bytes of a file that are inspected."""

# RFC 6838 §4.2 restricted names; parameters may follow.
_MEDIA_TYPE: Final = re.compile(
    r"(application|audio|font|haptics|image|message|model|multipart|text|video|x-[a-z0-9-]+)"
    r"/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
    r"([ \t]*;[ \t]*[A-Za-z0-9!#$&^_.+-]+=(\"[^\"\\\x00-\x1f\x7f]*\"|[A-Za-z0-9!#$&^_.+-]+))*",
    re.IGNORECASE,
)

# Offset, bytes, and the media types such a file may be called, the usual one first.
SIGNATURES: Final[tuple[tuple[int, bytes, tuple[str, ...]], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", ("image/png", "image/apng")),
    (0, b"\xff\xd8\xff", ("image/jpeg", "image/jpg", "image/pjpeg")),
    (0, b"GIF87a", ("image/gif",)),
    (0, b"GIF89a", ("image/gif",)),
    (0, b"BM", ("image/bmp", "image/x-ms-bmp")),
    (8, b"WEBP", ("image/webp",)),
    (8, b"WAVE", ("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave")),
    (4, b"ftypavif", ("image/avif",)),
    (4, b"ftypM4A", ("audio/mp4", "audio/x-m4a", "audio/aac", "video/mp4")),
    (4, b"ftyp", ("video/mp4", "audio/mp4", "video/quicktime", "image/heic", "image/heif", "audio/x-m4a")),
    (0, b"\x1aE\xdf\xa3", ("video/webm", "audio/webm", "video/x-matroska", "audio/x-matroska")),
    (0, b"OggS", ("audio/ogg", "video/ogg", "application/ogg", "audio/opus", "audio/vorbis")),
    (0, b"fLaC", ("audio/flac", "audio/x-flac")),
    (0, b"ID3", ("audio/mpeg", "audio/mp3", "audio/x-mpeg", "audio/aac")),
    (0, b"\xff\xfb", ("audio/mpeg", "audio/mp3", "audio/x-mpeg")),
    (0, b"\xff\xf3", ("audio/mpeg", "audio/mp3", "audio/x-mpeg")),
    (0, b"\xff\xf2", ("audio/mpeg", "audio/mp3", "audio/x-mpeg")),
    (0, b"\xff\xfa", ("audio/mpeg", "audio/mp3", "audio/x-mpeg")),
    (0, b"%PDF-", ("application/pdf",)),
    (0, b"PK\x03\x04", ("application/zip",)),
    (0, b"PK\x05\x06", ("application/zip",)),
)
SVG: Final = "image/svg+xml"
_KNOWN: Final = frozenset(name for *_, names in SIGNATURES for name in names) | {SVG}
_JSON: Final = re.compile(r"application/(?:[\w.-]+\+)?json")


def is_media_type(text: str) -> bool:
    return _MEDIA_TYPE.fullmatch(text) is not None


def essence(media_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def sniff(head: bytes) -> str | None:
    """Return the usual media type of content that begins with `head`, or None if it is unknown."""
    names = _names(head)
    return names[0] if names else None


def contradiction(media_type: str, head: bytes) -> str | None:
    """Return the contradiction between a file that begins with `head` and its media type; None if there is none, or
    it is unknown.
    """
    kind = essence(media_type)
    if not head:
        showable = kind.partition("/")[0] in ("image", "audio", "video")
        return f"is empty, which no {kind} is" if showable else None
    names = _names(head)
    if kind in _KNOWN:
        if kind in names:
            return None
        return f"is {names[0]}, not {kind}" if names else f"does not begin like {kind}"
    if kind.startswith("text/") or _JSON.fullmatch(kind):
        return _not_text(kind, head)
    return None


def _names(head: bytes) -> tuple[str, ...]:
    for offset, signature, names in SIGNATURES:
        if head.startswith(signature, offset):
            return names
    return (SVG,) if _is_svg(head) else ()


def _is_svg(head: bytes) -> bool:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"<svg") or (
        text.startswith((b"<?xml", b"<!--", b"<!DOCTYPE svg")) and b"<svg" in text
    )


def _not_text(kind: str, head: bytes) -> str | None:
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"is binary, not {kind}"
    if _JSON.fullmatch(kind):
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if start not in (b"{", b"[", b'"', b"t", b"f", b"n", b"-", *(b"%d" % digit for digit in range(10))):
            return f"does not begin like {kind}"
    return None
