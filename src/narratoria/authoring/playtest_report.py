"""The findings of a playtest."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from narratoria.events import JsonObject

FaultKind: TypeAlias = Literal["failed call", "dead end", "unanswered choice", "notice", "crash"]


class Fault(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that should not happen to a player, and the way there."""

    kind: FaultKind
    message: str
    player: int
    prompts: list[str]
    """All that the player had typed, the last of it met the fault."""
    count: int = 1
    session: str | None = None
    """A saved session in which it happened again, to open."""


class Ending(msgspec.Struct, kw_only=True):
    """An ending that players came to."""

    title: str
    count: int
    shortest: int
    """The turns of the quickest player."""
    state: JsonObject
    """The state of the quickest player at the end."""


class Report(msgspec.Struct, kw_only=True):
    """The findings of a playtest."""

    story: str
    players: int
    seed: int
    turns: int = 0
    seconds: float = 0.0
    faults: list[Fault] = []
    unreached_rules: list[str] = []
    unreached_cases: list[str] = []
    """Cases that never answered, of rules that did: `open-door: 1 3`."""
    endings: dict[str, Ending] = {}
    refusals: int = 0
    """Turns in which no rule answered."""
    refused: list[str] = []

    @property
    def turns_per_second(self) -> float:
        """Turns of all players in a second."""
        return self.turns / self.seconds if self.seconds else 0.0

    def to_json(self) -> JsonObject:
        """Return the report as `playtest --json` prints it."""
        document: JsonObject = msgspec.to_builtins(self)
        return {"clean": not self.faults, **document, "turnsPerSecond": round(self.turns_per_second, 2)}

    def add_ending(self, name: str, ending: Ending) -> None:
        """Count an ending that was reached, and keep the shortest way to it."""
        known = self.endings.setdefault(name, ending)
        if known is not ending:
            known.count += 1
            if ending.shortest < known.shortest:
                known.shortest, known.state = ending.shortest, ending.state

    def add_fault(self, fault: Fault) -> None:
        """Keep one fault of each kind and message: the one met soonest."""
        for at, known in enumerate(self.faults):
            if (known.kind, known.message) == (fault.kind, fault.message):
                count = known.count + 1
                if len(fault.prompts) < len(known.prompts):
                    self.faults[at] = fault
                self.faults[at].count = count
                return
        self.faults.append(fault)
