"""Moves between the turns of an open game, for the API: undo, redo, checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from narratoria.errors import JournalError, NarratoriaError
from narratoria.play import history, narration_edits
from narratoria.run.registry import ToolRegistry
from narratoria.web.documents import CheckpointCard, Restored, Undone, UndoPreview
from narratoria.web.open_game import OpenGame
from narratoria.web.undo_report import in_words


class Refused(NarratoriaError):
    """The move is not possible now."""


class NoCheckpoint(NarratoriaError):
    """The session has no checkpoint of this name."""


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    try:
        yield
    except JournalError as error:
        raise Refused(str(error)) from None


async def preview_undo(opened: OpenGame, to: int | None = None, *, imported: bool = False) -> UndoPreview:
    """Return what taking back the newest turn, or `to` and every later one, would do."""
    await opened.game.equipped()
    registry = opened.game.registry
    with refusing():
        if to is None:
            return _preview(
                [await history.preview_undo(opened.journal, registry, imported=imported)], registry
            )
        return _preview(
            await history.preview_undo_to(opened.journal, to, registry, imported=imported), registry
        )


async def undo(opened: OpenGame, to: int | None = None, *, imported: bool = False) -> list[history.Undone]:
    """Take back the newest turn, or `to` and every later one; return each outcome, the newest first."""
    await opened.game.equipped()
    with refusing():
        if to is None:
            return [await history.undo(opened.journal, opened.game.registry, imported=imported)]
        return await history.undo_to(opened.journal, to, opened.game.registry, imported=imported)


def told(undone: Sequence[history.Undone], registry: ToolRegistry) -> Undone:
    return Undone(
        turn=undone[-1].turn,
        turns=[one.turn for one in undone],
        irreversible=_left(undone, registry),
        compensated=[line for one in undone for line in one.compensated],
    )


async def redo(opened: OpenGame, to: int | None = None) -> list[int]:
    """Bring back the turn undone last, or all up to `to`; return their numbers, the oldest first."""
    with refusing():
        if to is None:
            return [await history.redo(opened.journal)]
        return await history.redo_to(opened.journal, to)


async def show_variant(opened: OpenGame, turn: int, *, imported: bool = False) -> Undone:
    """Let another variant of the newest turn count instead of it."""
    await opened.game.equipped()
    registry = opened.game.registry
    with refusing():
        return told([await history.show_variant(opened.journal, turn, registry, imported=imported)], registry)


async def edit_narration(opened: OpenGame, turn: int, text: str | None) -> None:
    """Change the text of a turn's narration."""
    with refusing():
        await narration_edits.edit_narration(opened.journal, turn, text)


# --- checkpoints -------------------------------------------------------------------------------------------


def checkpoints(opened: OpenGame) -> list[CheckpointCard]:
    """Return the checkpoints in the order of their turns."""
    marked = sorted(opened.journal.timeline.checkpoints.items(), key=lambda one: one[1])
    return [CheckpointCard(name=name, turn=turn) for name, turn in marked]


async def mark(opened: OpenGame, name: str) -> CheckpointCard:
    with refusing():
        return CheckpointCard(name=name, turn=await history.checkpoint(opened.journal, name))


async def preview_restore(opened: OpenGame, name: str, *, imported: bool = False) -> UndoPreview:
    _turn_of(opened, name)
    await opened.game.equipped()
    registry = opened.game.registry
    with refusing():
        return _preview(
            await history.preview_return(opened.journal, name, registry, imported=imported), registry
        )


async def restore(opened: OpenGame, name: str, *, imported: bool = False) -> Restored:
    """Take back every turn after the checkpoint; none if the story is already there."""
    turn = _turn_of(opened, name)
    await opened.game.equipped()
    registry = opened.game.registry
    with refusing():
        undone = await history.return_to(opened.journal, name, registry, imported=imported)
    return Restored(
        turn=turn,
        turns=[one.turn for one in undone],
        irreversible=_left(undone, registry),
        compensated=[line for one in undone for line in one.compensated],
    )


def _turn_of(opened: OpenGame, name: str) -> int:
    turn = opened.journal.timeline.checkpoints.get(name)
    if turn is None:
        known = ", ".join(repr(one.name) for one in checkpoints(opened)) or "none yet"
        raise NoCheckpoint(f"there is no checkpoint {name!r}; there are: {known}")
    return turn


def _preview(previews: Sequence[history.UndoPreview], registry: ToolRegistry) -> UndoPreview:
    return UndoPreview(
        turns=[one.turn for one in previews],
        irreversible=[line for one in previews for line in in_words(one.staying, registry)],
        compensated=[line for one in previews for line in one.compensated],
        imported=[line for one in previews for line in one.asked_by_a_file],
    )


def _left(undone: Sequence[history.Undone], registry: ToolRegistry) -> list[str]:
    """Return the outside effects that stay, because they cannot be taken back or taking them back failed."""
    return [line for one in undone for line in in_words([*one.staying, *one.not_taken_back], registry)]
