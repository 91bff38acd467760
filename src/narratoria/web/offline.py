"""The page that stands in while the server does not run, and the service worker that keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from narratoria.web.catalogues import Catalogue
from narratoria.web.page import hash_of, inline

PAGE: Final = "offline.html"
STYLES: Final = ("theme", "reference")


class Offline(NamedTuple):
    """The document, in one piece, its Content-Security-Policy, and the worker, which differs whenever it does."""

    page: bytes
    policy: str
    worker: bytes

    @classmethod
    def of(cls, files: Mapping[str, bytes], catalogue: Catalogue) -> Offline:
        styles = "".join(files[f"css/{name}.css"].decode() for name in STYLES)
        script = files["offline.js"].decode()
        page = catalogue.document(files[PAGE].decode())
        page = page.replace("<!--styles-->", inline("style", styles))
        page = page.replace("<!--script-->", inline("script", script))
        policy = (
            f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(styles)}; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
            "trusted-types 'none'"
        )
        version = hashlib.sha256(page.encode()).hexdigest()[:16]
        worker = files["worker.js"].decode().replace("VERSION", version, 1)
        worker = worker.replace(f"/static/{PAGE}", f"/static/{catalogue.file_name(PAGE)}")
        return cls(page.encode(), policy, worker.encode())
