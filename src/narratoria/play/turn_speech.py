"""The words of a narrator while it makes a plan: recorded as they come, so that a viewer reads along."""

from __future__ import annotations

from typing import Final

from narratoria.events import NarrationDelta, Notice
from narratoria.narrator.invocation import readable
from narratoria.session import Session

NOTE: Final = "NARRATOR_NOTE"  # the code of what a narrator notes about its own answer


class Speech:
    """The narration of one attempt at a plan, in the pieces in which it is written."""

    def __init__(self, session: Session, attempt: int) -> None:
        self._session = session
        self._attempt = attempt
        self._pieces: list[str] = []

    def say(self, text: str) -> None:
        """Record a piece of the narration."""
        text = readable(str(text))
        self._pieces.append(text)
        self._record(text)

    def unsay(self) -> None:
        """Take back every piece so far: the narrator failed half-way, and another one speaks."""
        self.replace("")

    def replace(self, text: str) -> None:
        """Record a text in place of every piece so far."""
        self._pieces.clear()
        self._record(text, anew=True)

    def complete(self, narrative: str) -> None:
        """Record the narrative of the finished plan, unless its pieces were just that."""
        if "".join(self._pieces).strip() != narrative:
            self._record(narrative, anew=bool(self._pieces))

    def note(self, text: str) -> None:
        """Show a note of the narrator about its own answer, beside the story."""
        self._session.notice(Notice(level="info", code=NOTE, message=readable(str(text))))

    def _record(self, text: str, *, anew: bool = False) -> None:
        self._session.record(NarrationDelta(text=text, attempt=self._attempt, anew=anew))
