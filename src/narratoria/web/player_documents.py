"""The documents of the API about players."""

from __future__ import annotations

from narratoria.web.documents import Document


class Me(Document, frozen=True, kw_only=True):
    """The player who is signed in. Both are empty where players have no accounts."""

    name: str
    role: str
