"""The documents of the API about players."""

from __future__ import annotations

from typing import Literal

from narratoria.web.documents import Document, Request


class Me(Document, frozen=True, kw_only=True):
    """The player who is signed in. Both are empty where players have no accounts."""

    name: str
    role: str


class NewShare(Request, frozen=True, kw_only=True):
    """Make a link to a session: whoever opens it may read it, or play it too."""

    access: Literal["read", "play"]


class ShareCard(Document, frozen=True, kw_only=True):
    """A link to a session. `path` is its address at this server, and in the answer that makes it only."""

    id: str
    access: str
    path: str = ""
