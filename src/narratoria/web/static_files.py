"""The page's own files, read once, packed into one document, and kept compressed.

A first visit is one request for everything the page is made of. Its scripts and styles stand in the document
itself; the policy that comes with it names their hashes, so nothing else that looks like script can run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from narratoria.web.access import PAGE_POLICY
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
        early, script = found["js/early.js"].decode(), pack_modules(modules, "main.js")
        styles = "".join(found[f"css/{name}.css"].decode() for name in STYLES)
        page = found.pop("index.html").decode()
        for mark, tag, content in (
            ("<!--early-->", "script", early),
            ("<!--styles-->", "style", styles),
            ("<!--script-->", "script", script),
        ):
            page = page.replace(mark, _element(tag, content))
        self._page = StaticFile.of("index.html", page.encode())
        self._policy = PAGE_POLICY.replace(
            "script-src 'self'", f"script-src 'self' {_hash(early)} {_hash(script)}"
        ).replace("style-src 'self'", f"style-src 'self' {_hash(styles)}")
        self._files = {name: StaticFile.of(name, content) for name, content in found.items()}

    async def page(self, request: Request) -> Response:
        """Every address of the client is one document; its script reads the address."""
        response = self._page.response(request)
        response.headers["Content-Security-Policy"] = self._policy
        return response

    async def file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["path"])
        if found is None:
            raise HTTPException(404)
        return found.response(request)


def _element(tag: str, content: str) -> str:
    name = tag.partition(" ")[0]
    if f"</{name}" in content:
        raise ValueError(f"the page's {name} holds its own end tag; write it in two parts")
    return f"<{tag}>{content}</{name}>"


def _hash(content: str) -> str:
    """As a Content-Security-Policy names what may stand in the document."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
