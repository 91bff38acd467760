"""Changes of the narrator's text by the player. The journal keeps both, and everything reads the changed one."""

from __future__ import annotations

from typing import Final

from narratoria.errors import JournalError
from narratoria.events import NarrationEdited
from narratoria.narrator.invocation import readable
from narratoria.play.history import refuse_while_undoing
from narratoria.store.journal import Journal

LONGEST: Final = 100_000  # letters of a text that a player writes


async def edit_narration(journal: Journal, turn: int, text: str | None) -> None:
    """Change the text of a turn that counts; None puts the narrator's own text back. The world stays as it is."""
    if text is not None:
        text = readable(text).strip()
        if not text:
            raise JournalError("the text is empty; write what is told, or undo the turn")
        if len(text) > LONGEST:
            raise JournalError(f"the text has {len(text):,} letters; at most {LONGEST:,} are kept")
    session, timeline = journal.session, journal.timeline
    async with session.turn_lock:
        refuse_while_undoing(journal)
        if timeline.open is not None:
            raise JournalError(f"turn {timeline.open} is not finished; let it end, then change a text")
        if turn not in timeline.turns:
            raise JournalError(f"turn {turn} is not a turn of the story as it stands")
        if text == timeline.edited.get(turn):
            return
        await journal.flush()
        before, past = timeline.copy(), list(session.past)

        def revert() -> None:
            session.past.clear()
            session.past.extend(past)
            timeline.become(before)

        journal.restoration().edit(turn, text)
        await journal.keep(NarrationEdited(turn=turn, text=text), revert=revert)
