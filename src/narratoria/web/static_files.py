"""The page's own files, read once and kept compressed: they are few, and a first visit asks for all."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

ROOT: Final = Path(__file__).parent / "static"
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    plain: bytes
    packed: bytes
    media_type: str
    etag: str

    @classmethod
    def read(cls, path: Path) -> StaticFile:
        plain = path.read_bytes()
        etag = f'"{hashlib.sha256(plain).hexdigest()[:24]}"'
        return cls(plain, gzip.compress(plain, 9, mtime=0), TYPES[path.suffix], etag)

    def response(self, request: Request) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.packed, headers=headers, media_type=self.media_type)
        return Response(self.plain, headers=headers, media_type=self.media_type)


class StaticFiles:
    """Every file below `root`; nothing else can be reached, as paths are looked up and never opened."""

    def __init__(self, root: Path = ROOT) -> None:
        self._files = {
            path.relative_to(root).as_posix(): StaticFile.read(path)
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }

    async def page(self, request: Request) -> Response:
        """Every address of the client is one document; its script reads the address."""
        return self._files["index.html"].response(request)

    async def file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["path"])
        return found.response(request) if found else PlainTextResponse("no such file", 404)
