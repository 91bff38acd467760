"""The page's own files, read once, packed into one script and one sheet of styles, and kept compressed."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from narratoria.web.packing import pack_modules

ROOT: Final = Path(__file__).parent / "static"
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
STYLES: Final = ("theme", "page", "story", "views")  # in the order in which they may override each other


@dataclass(frozen=True, slots=True)
class StaticFile:
    plain: bytes
    packed: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, name: str, plain: bytes) -> StaticFile:
        etag = f'"{hashlib.sha256(plain).hexdigest()[:24]}"'
        return cls(plain, gzip.compress(plain, 9, mtime=0), TYPES[Path(name).suffix], etag)

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
        found = {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }
        modules = {
            name.removeprefix("js/"): content.decode()
            for name, content in found.items()
            if name.startswith("js/") and name != "js/early.js"
        }
        found["page.js"] = pack_modules(modules, "main.js").encode()
        found["page.css"] = b"".join(found[f"css/{name}.css"] for name in STYLES)
        self._files = {name: StaticFile.of(name, content) for name, content in found.items()}

    async def page(self, request: Request) -> Response:
        """Every address of the client is one document; its script reads the address."""
        return self._files["index.html"].response(request)

    async def file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["path"])
        return found.response(request) if found else PlainTextResponse("no such file", 404)
