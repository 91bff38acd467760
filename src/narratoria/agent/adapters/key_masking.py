"""Removal of the API key from a server's reply, even if it arrives in two pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

HIDDEN: Final = "[key]"


class Discreet:
    """A stream of text without the secret; the end of a piece that may begin it is held back until the next piece."""

    def __init__(self, secret: str, pass_on: Callable[[str], None]) -> None:
        self._secret = secret
        self._pass_on = pass_on
        self._held = ""

    def __call__(self, piece: str) -> None:
        text = (self._held + piece).replace(self._secret, HIDDEN) if self._secret else piece
        keep = next(
            (size for size in range(len(self._secret) - 1, 0, -1) if text.endswith(self._secret[:size])), 0
        )
        self._held = text[len(text) - keep :]
        if shown := text[: len(text) - keep]:
            self._pass_on(shown)

    def end(self) -> None:
        """Pass on the text that was held back and is not the secret."""
        held, self._held = self._held, ""
        if held:
            self._pass_on(held)
