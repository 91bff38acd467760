"""The page's own files, read once and kept compressed."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from narratoria.web.offline import Offline
from narratoria.web.packing import LATER
from narratoria.web.page import Page

ROOT: Final = Path(__file__).parent / "static"
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
KEPT: Final = (
    "private, max-age=31536000, immutable"  # the address of a font is another one for another content
)
PRELOAD: Final = f'<link rel="modulepreload" href="/static/{LATER}">\n'.encode()


@dataclass(frozen=True, slots=True)
class StaticFile:
    plain: bytes
    packed: bytes
    media_type: str
    etag: str
    caching: str = "no-cache"
    policy: str = ""  # its own Content-Security-Policy, if it has one

    @classmethod
    def of(cls, name: str, plain: bytes) -> StaticFile:
        etag = f'"{hashlib.sha256(plain).hexdigest()[:24]}"'
        media_type = TYPES[Path(name).suffix]
        if media_type.startswith("font/"):  # which is compressed by itself
            return cls(plain, b"", media_type, etag, KEPT)
        return cls(plain, gzip.compress(plain, 9, mtime=0), media_type, etag)

    def response(self, request: Request) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": self.caching, "Vary": "Accept-Encoding"}
        if self.policy:
            headers["Content-Security-Policy"] = self.policy
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if self.packed and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.packed, headers=headers, media_type=self.media_type)
        return Response(self.plain, headers=headers, media_type=self.media_type)


class StaticFiles:
    """Every file below `root`; nothing else can be reached, as paths are looked up and never opened."""

    def __init__(self, root: Path = ROOT, fonts: Mapping[str, bytes] | None = None) -> None:
        self._found = {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }
        self.page = Page.of(self._found, fonts)
        self._found[LATER] = self.page.later.encode()
        self._files = {name: StaticFile.of(name, content) for name, content in self._found.items()}
        offline = Offline.of(self._found)
        page = StaticFile.of("offline.html", offline.page)
        self._files["offline.html"] = replace(page, policy=offline.policy)
        self._worker = StaticFile.of("worker.js", offline.worker)
        self._compose(fonts or {})

    def use_fonts(self, fonts: Mapping[str, bytes]) -> None:
        """Show pages in these fonts from now on."""
        self.page = Page.of(self._found, fonts)
        self._compose(fonts)

    def _compose(self, fonts: Mapping[str, bytes]) -> None:
        self._library = StaticFile.of("index.html", self.page.head + PRELOAD + self.page.body)
        self._files |= {f"fonts/{name}": StaticFile.of(name, content) for name, content in fonts.items()}

    async def library(self, request: Request) -> Response:
        """Return the document without a story in it; its script reads the address."""
        response = self._library.response(request)
        response.headers["Content-Security-Policy"] = self.page.policy
        return response

    async def worker(self, request: Request) -> Response:
        """Return the service worker. It stands at the root, since it is for every page."""
        return self._worker.response(request)

    async def file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["path"])
        if found is None:
            raise HTTPException(404)
        return found.response(request)
