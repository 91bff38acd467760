"""The HTML document of the page: everything needed to show a story at first, the story so far included.

A first visit is one request. Scripts and styles stand in the document itself; its Content-Security-Policy names their
hashes, so no other script can run. The story so far stands between its head and its body, as data: the page shows it
without another request, and opens the stream from there.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from narratoria.web.access import PAGE_POLICY
from narratoria.web.catalogues import VARY, Catalogue
from narratoria.web.fonts import font_styles, preloads
from narratoria.web.packing import LATER, pack_modules

STYLES: Final = (
    "theme",
    "page",
    "story",
    "views",
    "calls",
    "model",
    "short",
    "panel",
    "search",
    "memory",
)  # in the order in which they may override each other
HEADERS: Final = {"Cache-Control": "no-store", "Vary": VARY}
Story = Callable[[], Awaitable[bytes | None]]
GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


@dataclass(frozen=True, slots=True)
class Page:
    """The constant parts of the document in one language, plain and compressed."""

    head: bytes
    body: bytes
    packed_head: bytes
    packed_body: bytes
    later: str
    policy: str

    @classmethod
    def of(
        cls,
        files: Mapping[str, bytes],
        catalogue: Catalogue,
        fonts: Mapping[str, bytes] | None = None,
        names: Mapping[str, str] | None = None,
        notices: Sequence[tuple[str, str]] = (),
    ) -> Self:
        """Make a page from `index.html` and the files that its marks name, in this language and these fonts; `names`
        are the languages there are, `notices` the server's own words in English and in this one.
        """
        modules = {
            name.removeprefix("js/"): content.decode()
            for name, content in files.items()
            if name.startswith("js/") and name != "js/early.js"
        }
        early = files["js/early.js"].decode()
        packed = pack_modules(
            modules, "main.js", f"/static/{catalogue.file_name(LATER)}", catalogue, names, notices
        )
        styles = font_styles(fonts or {}) + "".join(files[f"css/{name}.css"].decode() for name in STYLES)
        page = catalogue.document(files["index.html"].decode())
        page = page.replace("<!--fonts-->\n", preloads(fonts or {}))
        for mark, tag, content in (
            ("<!--early-->", "script", early),
            ("<!--styles-->", "style", styles),
            ("<!--script-->", "script", packed.first),
        ):
            page = page.replace(mark, inline(tag, content))
        head, body = (part.encode() for part in page.split("<!--story-->"))
        policy = PAGE_POLICY.replace(
            "script-src 'self'", f"script-src 'self' {hash_of(early)} {hash_of(packed.first)}"
        ).replace("style-src 'self'", f"style-src 'self' {hash_of(styles)}")
        return cls(head, body, _deflate(head), _deflate(body), packed.later, policy)

    def response(self, request: Request, story: Story) -> Response:
        """Return the document with `story`, a JSON text. Until it is ready the browser works on the head."""
        packed = "gzip" in request.headers.get("accept-encoding", "")
        headers = HEADERS | {"Content-Security-Policy": self.policy}
        if packed:
            headers["Content-Encoding"] = "gzip"
        parts = self._packed(story) if packed else self._plain(story)
        return StreamingResponse(parts, headers=headers, media_type="text/html; charset=utf-8")

    async def _plain(self, story: Story) -> AsyncIterator[bytes]:
        yield self.head
        yield _data(await story()) + self.body

    async def _packed(self, story: Story) -> AsyncIterator[bytes]:
        """Yield one gzip member of independent parts, so that the constant ones are compressed only once."""
        yield GZIP_HEADER + self.packed_head
        data = _data(await story())
        checked = zlib.crc32(self.body, zlib.crc32(data, zlib.crc32(self.head)))
        size = len(self.head) + len(data) + len(self.body)
        end = zlib.compressobj(wbits=-zlib.MAX_WBITS).flush()
        trailer = checked.to_bytes(4, "little") + size.to_bytes(4, "little")
        yield _deflate(data, level=1) + self.packed_body + end + trailer


def _deflate(content: bytes, level: int = 9) -> bytes:
    """Compress content to whole bytes, without references to earlier content: such parts can be joined."""
    packing = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packing.compress(content) + packing.flush(zlib.Z_FULL_FLUSH)


def _data(story: bytes | None) -> bytes:
    """Return a data block that no browser runs. Without `<` nothing in it can end it."""
    if story is None:
        return b""
    escaped = story.replace(b"<", b"\\u003c")
    return b'<script type="application/json" id="story-so-far">' + escaped + b"</script>"


def inline(tag: str, content: str) -> str:
    """Return a script or style as an element of a document."""
    if f"</{tag}" in content:
        raise ValueError(f"the page's {tag} holds its own end tag; write it in two parts")
    return f"<{tag}>{content}</{tag}>"


def hash_of(content: str) -> str:
    """Return the hash of a script or style for the Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
