"""The page's own files, read once and kept compressed; those that hold words are made once in each language."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from narratoria.web.catalogues import DEFAULT, MANIFEST, VARY, Catalogue, Catalogues, shipped
from narratoria.web.offline import PAGE as OFFLINE
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
SPOKEN: Final = frozenset({LATER, MANIFEST, OFFLINE})  # the files that hold words


@dataclass(frozen=True, slots=True)
class StaticFile:
    plain: bytes
    packed: bytes
    media_type: str
    etag: str
    caching: str = "no-cache"
    vary: str = "Accept-Encoding"
    policy: str = ""  # its own Content-Security-Policy, if it has one

    @classmethod
    def of(cls, name: str, plain: bytes) -> StaticFile:
        etag = f'"{hashlib.sha256(plain).hexdigest()[:24]}"'
        media_type = TYPES[Path(name).suffix]
        if media_type.startswith("font/"):  # which is compressed by itself
            return cls(plain, b"", media_type, etag, KEPT)
        return cls(plain, gzip.compress(plain, 9, mtime=0), media_type, etag)

    def response(self, request: Request) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": self.caching, "Vary": self.vary}
        if self.policy:
            headers["Content-Security-Policy"] = self.policy
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if self.packed and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.packed, headers=headers, media_type=self.media_type)
        return Response(self.plain, headers=headers, media_type=self.media_type)


class Localised(NamedTuple):
    """The page in one language, and the other files that hold words."""

    page: Page
    library: StaticFile
    worker: StaticFile
    files: Mapping[str, StaticFile]


class StaticFiles:
    """Every file below `root`; nothing else can be reached, as paths are looked up and never opened."""

    def __init__(
        self,
        root: Path = ROOT,
        fonts: Mapping[str, bytes] | None = None,
        catalogues: Catalogues | None = None,
    ) -> None:
        self._found = {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }
        self._catalogues = catalogues or shipped()
        self._files = {
            name: StaticFile.of(name, content) for name, content in self._found.items() if name not in SPOKEN
        }
        self.use_fonts(fonts or {})

    def use_fonts(self, fonts: Mapping[str, bytes]) -> None:
        """Show pages in these fonts from now on."""
        self._fonts = fonts
        self._files |= {f"fonts/{name}": StaticFile.of(name, content) for name, content in fonts.items()}
        self._localised: dict[str, Localised] = {}
        self._in(self._catalogues[DEFAULT])

    def _in(self, catalogue: Catalogue) -> Localised:
        """Return the files in a language, made when it is first asked for."""
        known = self._localised.get(catalogue.language)
        if known is None:
            known = self._localised[catalogue.language] = self._make(catalogue)
        return known

    def _make(self, catalogue: Catalogue) -> Localised:
        names = {one.language: one.name for one in self._catalogues.values()}
        page = Page.of(self._found, catalogue, self._fonts, names, self._catalogues.notices(catalogue))
        later, manifest = page.later.encode(), catalogue.manifest(self._found[MANIFEST].decode()).encode()
        offline = Offline.of(self._found, catalogue)
        made = {
            LATER: StaticFile.of(LATER, later),
            MANIFEST: StaticFile.of(MANIFEST, manifest),
            OFFLINE: replace(StaticFile.of(OFFLINE, offline.page), policy=offline.policy),
        }
        preload = f'<link rel="modulepreload" href="/static/{catalogue.file_name(LATER)}">\n'.encode()
        library = StaticFile.of("index.html", page.head + preload + page.body)
        return Localised(
            page,
            replace(library, policy=page.policy, vary=VARY),
            replace(StaticFile.of("worker.js", offline.worker), vary=VARY),
            {catalogue.file_name(name): file for name, file in made.items()},
        )

    def page(self, request: Request) -> Page:
        """Return the page in the language of a browser."""
        return self._in(self._catalogues.chosen(request.headers)).page

    async def library(self, request: Request) -> Response:
        """Return the document without a story in it; its script reads the address."""
        return self._in(self._catalogues.chosen(request.headers)).library.response(request)

    async def worker(self, request: Request) -> Response:
        """Return the service worker. It stands at the root, since it is for every page."""
        return self._in(self._catalogues.chosen(request.headers)).worker.response(request)

    async def file(self, request: Request) -> Response:
        path = request.path_params["path"]
        found = self._files.get(path) or self._localised_file(path)
        if found is None:
            raise HTTPException(404)
        return found.response(request)

    def _localised_file(self, path: str) -> StaticFile | None:
        for catalogue in self._catalogues.values():
            if path in {catalogue.file_name(name) for name in SPOKEN}:
                return self._in(catalogue).files.get(path)
        return None
