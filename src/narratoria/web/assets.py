"""Assets over HTTP: by hash only, and never as something a browser would run.

What a tool says its file is decides nothing here. The first bytes do, and only pictures, sounds and films are
shown; anything else is a download.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.responses import FileResponse, Response

# An SVG opened by itself is a document that can run script; in a sandbox without an origin it cannot.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
FOREVER: Final = "private, max-age=31536000, immutable"
OTHER: Final = "application/octet-stream"
_SNIFFED: Final = 1024

_SIGNATURES: Final = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"BM", "image/bmp"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
)


def media_type_of(head: bytes) -> str:
    """The media type the first bytes show, or that of bytes nobody should interpret."""
    for offset, signature, media_type in _SIGNATURES:
        if head.startswith(signature, offset):
            return media_type
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<svg") or (
        text.startswith((b"<?xml", b"<!--", b"<!DOCTYPE svg")) and b"<svg" in text
    ):
        return "image/svg+xml"
    return OTHER


def asset_response(path: Path) -> Response:
    """The file, with ranges for players that seek."""
    with path.open("rb") as file:
        media_type = media_type_of(file.read(_SNIFFED))
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": FOREVER}
    if media_type == OTHER:
        headers["Content-Disposition"] = "attachment"
    return FileResponse(path, media_type=media_type, headers=headers)
