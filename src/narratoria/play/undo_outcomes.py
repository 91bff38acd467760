"""Outcomes of an undo, as a preview and as a result: the effects taken back and those that stay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from narratoria.events import Notification, TurnStarted
from narratoria.play.compensation import SentNotification, Staying, StayingEffect, Weighed
from narratoria.play.resource_undo import Changed
from narratoria.session import Record

RECEIPT_SHOWN: Final = 300


@dataclass(slots=True)
class UndoPreview:
    """The effects outside the session that an undo of `turn` would take back, and those it cannot."""

    turn: int
    prompt: str = ""
    staying: list[Staying] = field(default_factory=list)
    compensated: list[str] = field(default_factory=list)
    asked_by_a_file: list[str] = field(default_factory=list)  # of those compensated, with what the file says

    @property
    def imported(self) -> bool:
        """Tell if more would be taken back by compensations that an imported file names."""
        return any(isinstance(one, StayingEffect) and one.of_a_file for one in self.staying)

    @property
    def irreversible(self) -> list[str]:
        """The effects that stay, a line each."""
        return [str(one) for one in self.staying]

    @property
    def tools_missing(self) -> bool:
        """Tell if more could be taken back with the story's tools available."""
        return any(isinstance(one, StayingEffect) and one.lacks_tool for one in self.staying)


@dataclass(slots=True)
class Undone:
    """A turn that was taken back, and what stays of it outside the session."""

    turn: int
    prompt: str
    staying: list[Staying] = field(default_factory=list)  # as it is, outside the session
    compensated: list[str] = field(default_factory=list)
    not_taken_back: list[StayingEffect] = field(default_factory=list)  # by a compensation that did not work

    @property
    def irreversible(self) -> list[str]:
        """The effects that stay, in words."""
        return [str(one) for one in self.staying]

    @property
    def failed(self) -> list[str]:
        """The effects whose compensation did not work, in words."""
        return [str(one) for one in self.not_taken_back]


def previewed(
    turn: int, records: list[Record], weighed: list[Weighed], changes: list[Changed]
) -> UndoPreview:
    sent = [SentNotification(one.event.event) for one in records if isinstance(one.event, Notification)]
    return UndoPreview(
        turn,
        prompt_of(records),
        staying=[
            *(stays for _, stays in weighed if stays is not None),
            *(one.stays for one in changes if one.stays is not None),
            *sent,
        ],
        compensated=[
            *(applied.description for applied, stays in weighed if stays is None),
            *(one.description for one in changes if one.stays is None),
        ],
        asked_by_a_file=[
            *(
                _with_receipt(one.tool, one.description, one.receipt)
                for one, stays in weighed
                if stays is None and one.imported
            ),
            *(
                _with_receipt(one.tool, one.description, one.change.receipt)
                for one in changes
                if one.stays is None and one.change.imported
            ),
        ],
    )


def _with_receipt(tool: str, description: str, receipt: Any) -> str:
    told = msgspec.json.encode(receipt).decode()
    shown = told if len(told) <= RECEIPT_SHOWN else f"{told[:RECEIPT_SHOWN]}…"
    return f"{tool}: {description} {shown}"


def prompt_of(records: list[Record]) -> str:
    return next((record.event.prompt for record in records if isinstance(record.event, TurnStarted)), "")
