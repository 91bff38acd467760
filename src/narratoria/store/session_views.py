"""The views of a session as people see it: its turns, with their plans, calls, attempts and approvals."""

from __future__ import annotations

from typing import Any

import msgspec

from narratoria.events import AssetStored, JsonObject, Log, ModelAsked, Notice, RecalledMemory, UiEvent


class _View(msgspec.Struct, kw_only=True, rename="camel"):
    pass


class AttemptView(_View):
    """One attempt at a call, with the error of a failed one, and the ending of its process if it was one.

    `duration` and `started` are in seconds; `delay` is the wait before the next attempt, if one follows.
    """

    attempt: int
    ok: bool | None = None
    logs: list[Log] = msgspec.field(default_factory=list)
    patches: list[JsonObject] = msgspec.field(default_factory=list)
    ui: list[UiEvent] = msgspec.field(default_factory=list)
    error: str | None = None
    error_code: str | None = None
    started: float = 0.0
    duration: float | None = None
    delay: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    stderr: str | None = None


class CallView(_View):
    call: str
    tool: str
    tool_id: str | None = None
    plan: str | None = None
    state: str = "running"
    ok: bool | None = None
    input: JsonObject = msgspec.field(default_factory=dict)
    output: JsonObject = msgspec.field(default_factory=dict)
    value: Any = None
    message: str = ""
    error: str | None = None
    error_code: str | None = None
    duration: float = 0.0
    attempts: list[AttemptView] = msgspec.field(default_factory=list)
    assets: list[AssetStored] = msgspec.field(default_factory=list)
    refused_assets: list[str] = msgspec.field(default_factory=list)
    committed: bool = False


class ApprovalView(_View):
    """A question to a person, and its answer; while it is open, `decision` is None."""

    id: str
    call: str
    tool: str
    input: JsonObject = msgspec.field(default_factory=dict)
    reason: str = ""
    decision: str | None = None
    edited_input: JsonObject | None = None
    answer: str = ""  # the reason of a refusal
    by: str = ""


class PlanView(_View):
    plan: JsonObject
    attempt: int
    narrator: str = ""
    success: bool | None = None


class TurnView(_View):
    """One turn. `undone` turns are kept: they can be read, branched from, and redone while no turn came after."""

    turn: int
    prompt: str = ""
    origin: str = "player"
    narrative: str = ""
    told: str | None = None  # the narrator's own text, where the player changed it
    choices: list[str] = msgspec.field(default_factory=list)
    outcome: str = "open"
    narrator: str = ""
    started: float = 0.0
    ended: float | None = None
    undone: bool = False
    variants: list[int] = msgspec.field(default_factory=list)
    """The turns that were taken in its place, itself among them, oldest first; empty if it was taken once."""
    plans: list[PlanView] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    calls: list[CallView] = msgspec.field(default_factory=list)
    assets: list[AssetStored] = msgspec.field(default_factory=list)  # those that were committed
    notices: list[Notice] = msgspec.field(default_factory=list)
    approvals: list[ApprovalView] = msgspec.field(default_factory=list)
    asked: list[ModelAsked] = msgspec.field(default_factory=list)  # replies of language models
    recalled: list[RecalledMemory] = msgspec.field(default_factory=list)


class SessionView(_View):
    session: str = ""
    story: str | None = None
    title: str | None = None
    parent: str | None = None
    parent_turn: int | None = None
    turns: list[TurnView] = msgspec.field(default_factory=list)
    calls: list[CallView] = msgspec.field(default_factory=list)  # those made outside any turn
    other_assets: list[AssetStored] = msgspec.field(default_factory=list)
    checkpoints: dict[str, int] = msgspec.field(default_factory=dict)
    lost: int = 0  # records that damage has cost it

    @property
    def told(self) -> list[TurnView]:
        """The turns that count: committed and not taken back."""
        return [turn for turn in self.turns if turn.outcome != "open" and not turn.undone]

    @property
    def assets(self) -> list[AssetStored]:
        return [*self.other_assets, *(asset for turn in self.told for asset in turn.assets)]
