"""Assets over HTTP: by hash only, and never in a form that a browser would run.

The media type that a tool names does not count here. The first bytes do, and only pictures, sounds and films are
shown; anything else is a download.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.responses import FileResponse, Response

from narratoria.session.media import HEAD_BYTES, sniff

# An SVG opened by itself is a document that can run script; in a sandbox without an origin it cannot.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
FOREVER: Final = "private, max-age=31536000, immutable"
OTHER: Final = "application/octet-stream"
_SHOWN: Final = ("image/", "audio/", "video/")


def media_type_of(head: bytes) -> str:
    """Return the media type that the first bytes show, or that of plain bytes."""
    found = sniff(head)
    return found if found is not None and found.startswith(_SHOWN) else OTHER


def asset_response(path: Path) -> Response:
    """Return the file, with ranges for players that seek."""
    with path.open("rb") as file:
        media_type = media_type_of(file.read(HEAD_BYTES))
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": FOREVER}
    if media_type == OTHER:
        headers["Content-Disposition"] = "attachment"
    return FileResponse(path, media_type=media_type, headers=headers)
