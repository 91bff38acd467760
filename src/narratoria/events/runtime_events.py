"""The runtime's own events, from the beginning of a session to its undone turns.

Those of calls are in `call_events`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from narratoria.events.call_events import (
    ApprovalGiven,
    ApprovalRequested,
    AssetDenied,
    AssetStored,
    CallEmitted,
    CallFinished,
    CallRetrying,
    CallStarted,
    Committed,
    RuntimeEvent,
)
from narratoria.events.tool_events import JsonObject


class SessionStarted(RuntimeEvent, tag="session_started", frozen=True, kw_only=True):
    """The first record of a session. With `imported` it came from a file, and its permissions are claims."""

    session: str
    story: str | None = None
    title: str | None = None
    state: JsonObject = msgspec.field(default_factory=dict)
    permissions: list[str] = msgspec.field(default_factory=list)
    parent_session: str | None = None
    parent_turn: int | None = None
    imported: bool = False


class TurnStarted(RuntimeEvent, tag="turn_started", frozen=True, kw_only=True):
    """A turn began with the words of the player, or of a choice; with none the story goes on by itself."""

    turn: int
    prompt: str
    origin: Literal["player", "choice", "opening", "retry", "continue"] = "player"


class NarratorChosen(RuntimeEvent, tag="narrator_chosen", frozen=True, kw_only=True):
    """The narrator chosen for this generation, and the reasons why those before it were passed over."""

    narrator: str
    attempt: int
    passed_over: dict[str, str] = msgspec.field(default_factory=dict)


class ModelAsked(RuntimeEvent, tag="model_asked", frozen=True, kw_only=True):
    """A language model gave a reply: the tokens it read and wrote, by its server's count or, with `estimated`, ours.

    `cost` is in dollars, 0 where neither the server nor a person named a price.
    """

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    estimated: bool = False


class RecalledMemory(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Something that was remembered for a turn, and why: it was pinned, it is always told, a keyword of it stood in the
    prompt or in the narration before, the state was as it says, or it was near in meaning.
    """

    id: str
    kind: Literal["note", "lore", "character", "turn", "memory"]
    why: Literal["note", "pinned", "always", "state", "keyword", "meaning"]
    text: str
    name: str = ""
    word: str = ""  # the keyword, as it stood there
    earlier: bool = False  # the keyword stood in the narration before


class MemoriesRecalled(RuntimeEvent, tag="memories_recalled", frozen=True, kw_only=True):
    """The memories that the narrators of a turn had before them."""

    memories: list[RecalledMemory]


class NarrationDelta(RuntimeEvent, tag="narration_delta", frozen=True, kw_only=True):
    """A piece of narration as it is being written; replaced by the `Narration` of the same turn.

    With `anew`, the pieces of this attempt so far do not stand: a narrator failed half-way, and another one speaks.
    """

    text: str
    attempt: int = 1
    anew: bool = False

    def after(self, text: str) -> str:
        """The narration so far, `text`, with this piece."""
        return self.text if self.anew else text + self.text


class Narration(RuntimeEvent, tag="narration", frozen=True, kw_only=True):
    """The whole narration of a turn, after its pieces."""

    text: str
    narrator: str = ""
    attempt: int = 1


class NarrationEdited(RuntimeEvent, tag="narration_edited", frozen=True, kw_only=True):
    """The player changed the text of a turn's narration. Without `text` the narrator's own stands again."""

    turn: int
    text: str | None = None


class PlanMade(RuntimeEvent, tag="plan_made", frozen=True, kw_only=True):
    """A narrator made a plan."""

    plan: JsonObject
    attempt: int
    narrator: str = ""
    told: dict[str, str] = msgspec.field(default_factory=dict)
    """By id of a call, the words of the narrator in place of the tool's summary."""


class PlanRefused(RuntimeEvent, tag="plan_refused", frozen=True, kw_only=True):
    """A generation without a usable plan: the plan was invalid, or the narrator failed or was too slow."""

    attempt: int
    problems: list[str]
    narrator: str = ""
    plan: str | None = None  # its id, where there was a plan that has one
    rejected: bool = False  # there was a plan, and `problems` tell what is wrong with it


class PlanFinished(RuntimeEvent, tag="plan_finished", frozen=True, kw_only=True):
    """A plan was executed; `failed` are the ids of calls that failed."""

    plan: str
    success: bool
    failed: list[str] = msgspec.field(default_factory=list)
    duration: float = 0.0
    can_replan: bool = False


class SkillHealth(RuntimeEvent, tag="skill_health", frozen=True, kw_only=True):
    """The health of a skill changed: after failures it is used less, or no more."""

    skill: str
    health: Literal["healthy", "degraded", "temporaryFailure", "permanentFailure"]
    failures: int = 0
    reason: str = ""


class Choices(RuntimeEvent, tag="choices", frozen=True, kw_only=True):
    """The choices offered to the player. A narrator's hints are dropped with the next turn; `standing` are the
    choices left then.
    """

    choices: list[str]
    standing: list[str] | None = None


class Notice(RuntimeEvent, tag="notice", frozen=True, kw_only=True):
    """Something a person should know that is not part of the story."""

    level: Literal["info", "warn", "error"]
    message: str
    code: str | None = None
    suggestions: list[str] = msgspec.field(default_factory=list)


class TurnCommitted(RuntimeEvent, tag="turn_committed", frozen=True, kw_only=True):
    """A turn ended, and what it changed is kept."""

    turn: int
    outcome: Literal["completed", "fallback", "cancelled"] = "completed"


class UndoStarted(RuntimeEvent, tag="undo_started", frozen=True, kw_only=True):
    """The runtime is about to take back this turn's effects outside the session."""

    turn: int


class UndoCancelled(RuntimeEvent, tag="undo_cancelled", frozen=True, kw_only=True):
    """An interrupted undo of this turn is not resumed automatically; it must be asked for again."""

    turn: int


class EffectTakenBack(RuntimeEvent, tag="effect_taken_back", frozen=True, kw_only=True):
    """One effect of a turn was undone outside the session; a resumed undo does not undo it again."""

    turn: int
    call: str
    effect: int
    description: str = ""


class TurnUndone(RuntimeEvent, tag="turn_undone", frozen=True, kw_only=True):
    """A turn was taken back."""

    turn: int


class TurnRedone(RuntimeEvent, tag="turn_redone", frozen=True, kw_only=True):
    """A turn that was taken back counts again."""

    turn: int


class Checkpoint(RuntimeEvent, tag="checkpoint", frozen=True, kw_only=True):
    """A place to come back to, by a name that the player chose."""

    name: str
    turn: int


class RecordsLost(RuntimeEvent, tag="records_lost", frozen=True, kw_only=True):
    """A damaged database was salvaged: records `first` to `last` of this session could not be read.

    `resumed` is the snapshot that tells how things stood at or after `last`, where the session goes on behind the gap.
    """

    first: int
    last: int
    resumed: JsonObject | None = None

    @property
    def count(self) -> int:
        """The number of lost records."""
        return self.last - self.first + 1


class Notification(RuntimeEvent, tag="notification", frozen=True, kw_only=True):
    """A notification effect, published after the call that made it is committed."""

    event: str
    payload: Any = None


AnyRuntimeEvent: TypeAlias = (
    SessionStarted
    | TurnStarted
    | NarratorChosen
    | ModelAsked
    | MemoriesRecalled
    | NarrationDelta
    | Narration
    | NarrationEdited
    | PlanMade
    | PlanRefused
    | ApprovalRequested
    | ApprovalGiven
    | CallStarted
    | CallEmitted
    | AssetStored
    | AssetDenied
    | CallRetrying
    | CallFinished
    | Committed
    | PlanFinished
    | SkillHealth
    | Choices
    | Notice
    | TurnCommitted
    | UndoStarted
    | UndoCancelled
    | EffectTakenBack
    | TurnUndone
    | TurnRedone
    | Checkpoint
    | RecordsLost
    | Notification
)
"""Any event of the runtime that a session records."""
