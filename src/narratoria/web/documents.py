"""The JSON documents that the API takes and returns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from narratoria.play.story_keys import PanelTable
from narratoria.store.recorded_call import EventView, RecordedCall
from narratoria.store.store import LARGEST

Number = Annotated[int, msgspec.Meta(ge=0, le=LARGEST - 1)]
"""The number of a turn or of a record."""


class Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of answers."""


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of request bodies; an unknown key is refused."""


# --- asked ---------------------------------------------------------------------------------------------


class NewSession(Request, frozen=True, kw_only=True):
    """Begin a story."""

    story: str


class Prompt(Request, frozen=True, kw_only=True):
    """The player's prompt. `origin` is `choice` if it is one of the offered choices."""

    prompt: str
    origin: Literal["player", "choice"] = "player"


class Answer(Request, frozen=True, kw_only=True):
    """The answer to an open question. With `edit` the call runs with `input`; `reason` is for a refusal."""

    decision: Literal["approve", "edit", "refuse"]
    input: dict[str, Any] | None = None
    reason: str = ""


class Undo(Request, frozen=True, kw_only=True):
    """Take back the turn `to` and every later one; without `to`, the newest alone."""

    to: Number | None = None
    imported: bool = False
    """Run the rollbacks that an imported file brought, too. Ask a person first."""


class Redo(Request, frozen=True, kw_only=True):
    """Bring back every undone turn up to `to`: all of them, or none. Without `to`, the one undone last."""

    to: Number | None = None


class Retry(Request, frozen=True, kw_only=True):
    """Take a turn again, with the same prompt or another: the turn `to`, with which every later one is taken back, or
    the newest.
    """

    prompt: str | None = None
    to: Number | None = None


class Variant(Request, frozen=True, kw_only=True):
    """Let `turn`, another variant of the newest turn, count instead of it. `imported` as in an undo."""

    turn: int
    imported: bool = False


class NarrationEdit(Request, frozen=True, kw_only=True):
    """Change the text of a turn's narration; null puts the narrator's own back."""

    turn: int
    text: str | None


class BranchPoint(Request, frozen=True, kw_only=True):
    """The last turn the new session shares with this one, or the first it does not share: `before`. With neither, the
    newest is shared.
    """

    turn: Number | None = None
    before: Number | None = None


class NewCheckpoint(Request, frozen=True, kw_only=True):
    """Give the newest turn a name to come back to. A name used before moves here."""

    name: str


class Restore(Request, frozen=True, kw_only=True):
    """Take back every turn after this checkpoint."""

    checkpoint: str
    imported: bool = False
    """Run the rollbacks that an imported file brought, too. Ask a person first."""


class SettingsChange(Request, frozen=True, kw_only=True):
    """Only the given keys change."""

    narrator: str | None = None
    skills: dict[str, bool] = {}
    skill_settings: dict[str, dict[str, Any]] = {}
    """Settings of skills, by name and key; null takes one back. They are the person's, in every story."""
    permissions: dict[str, bool] = {}


class SessionChange(Request, frozen=True, kw_only=True):
    """Only the given keys change."""

    title: str | None = None
    settings: SettingsChange | None = None


class RunCall(Request, frozen=True, kw_only=True):
    """Run a recorded call again in a scratch session: with its own input, or with `input`."""

    call: str
    turn: Number | None = None
    input: dict[str, Any] | None = None
    agreed: bool = False
    """A person has agreed to what it does outside the story. Without that, such a call is refused."""


# --- answered ------------------------------------------------------------------------------------------


class StoryCard(Document, frozen=True, kw_only=True):
    id: str
    title: str
    description: str
    author: str = ""
    note: str = ""
    language: str = "en"
    cover: str | None = None
    """The hash of a picture under `/assets/`."""
    cover_alt: str = ""
    problem: str = ""
    """The first mistake of a story that cannot be played: file, line, and what to do."""
    warning: str = ""
    """The first warning of a story that can be played, for whoever writes it."""


class SessionCard(Document, frozen=True, kw_only=True):
    """A saved session, with an excerpt of its last turn."""

    id: str
    title: str
    story: str | None
    story_title: str
    updated: float
    turns: int
    excerpt: str = ""
    picture: str | None = None
    parent: str | None = None
    ending: str | None = None
    language: str = "en"


class Made(Document, frozen=True, kw_only=True):
    id: str


class Token(Document, frozen=True, kw_only=True):
    """A token that signs one browser in, once, as `?token=` of any page."""

    token: str
    seconds: int


class TurnNumber(Document, frozen=True, kw_only=True):
    """The number of a turn; its events are on the stream."""

    turn: int


class UndoPreview(Document, frozen=True, kw_only=True):
    """The effects of an undo, and those it cannot take back. Ask a person first if `irreversible` is not empty."""

    turns: list[int]
    """The turns that would be taken back, the newest first."""
    irreversible: list[str] = []
    """Effects outside the session that cannot be taken back."""
    compensated: list[str] = []
    """Effects outside the session that would be taken back too; a redo, which runs no tool, cannot repeat them."""
    imported: list[str] = []
    """Those of `compensated` that an imported file brought, with what its rollbacks would be given. Only if asked for
    with `imported=true`; else they are under `irreversible`.
    """


class Undone(Document, frozen=True, kw_only=True):
    turn: int
    """The oldest turn that was taken back."""
    turns: list[int] = []
    irreversible: list[str] = []
    """Effects outside the session that cannot be taken back."""
    compensated: list[str] = []


class Redone(Document, frozen=True, kw_only=True):
    turn: int
    """The newest turn that was brought back."""
    turns: list[int] = []


class CheckpointCard(Document, frozen=True, kw_only=True):
    """A turn with a name."""

    name: str
    turn: int


class Restored(Document, frozen=True, kw_only=True):
    turn: int
    """The newest turn that counts now."""
    turns: list[int] = []
    """The turns that were taken back, the newest first; none if the story was already there."""
    irreversible: list[str] = []
    """Effects outside the session that cannot be taken back."""
    compensated: list[str] = []


class ToolName(Document, frozen=True, kw_only=True):
    """A tool's name for players: its `title`, or else its `description`."""

    name: str
    title: str = ""
    description: str = ""


class Question(Document, frozen=True, kw_only=True):
    """A call that waits for approval: its tool, its input, the reason for the question, and the schema of the input."""

    id: str
    turn: int | None
    call: str
    tool: str
    title: str = ""
    description: str = ""
    input: dict[str, Any]
    reason: str
    parameters: dict[str, Any]


class SkillField(Document, frozen=True, kw_only=True):
    """One setting of a skill, as a form shows it. The value of a secret says where it is kept, `env:` or `keyring:`."""

    key: str
    title: str
    description: str = ""
    kind: Literal["text", "secret", "number", "switch", "choice", "json"] = "text"
    value: Any = None
    source: Literal["you", "the story", "default", "not set"] = "not set"
    options: list[Any] = []


class Skill(Document, frozen=True, kw_only=True):
    name: str
    description: str
    enabled: bool
    health: str = "healthy"
    settings: list[SkillField] = []


class Permission(Document, frozen=True, kw_only=True):
    name: str
    granted: bool


class Settings(Document, frozen=True, kw_only=True):
    narrator: str
    narrators: list[str]
    missing: dict[str, str] = {}
    """Unavailable narrators, each with what it lacks."""
    skills: list[Skill]
    permissions: list[Permission]


class CallDetails(Document, frozen=True, kw_only=True):
    """A call taken apart, and the command that repeats it; `outside` is what a person has to agree to before it is
    run again, `refused` why it cannot be.
    """

    call: RecordedCall
    command: str
    notes: list[str] = []
    outside: list[str] = []
    refused: str = ""


class CallEvents(Document, frozen=True, kw_only=True):
    """Events of a call from number `first` on; there are `total`."""

    first: int
    total: int
    events: list[EventView]


class AssetCard(Document, frozen=True, kw_only=True):
    """An asset that stands, with the record that stored it and its turn."""

    seq: int
    turn: int
    call: str
    asset_id: str
    kind: str
    media_type: str
    hash: str
    size: int
    name: str = ""
    metadata: dict[str, Any] | None = None


class AssetPage(Document, frozen=True, kw_only=True):
    """Assets, the newest first; there are `total` before the record that was named, `kinds` of each media type."""

    total: int
    kinds: dict[str, int]
    assets: list[AssetCard]


class ExcerptPart(Document, frozen=True, kw_only=True):
    """A part of an excerpt; `found` if it is what was searched for. It is text, never markup."""

    text: str
    found: bool = False


class FoundTurn(Document, frozen=True, kw_only=True):
    """A turn in which everything was found that was searched for."""

    turn: int
    newer: int
    """The number of turns that count after it."""
    said: bool = False
    """The excerpt is of what the player said, not of the narration."""
    excerpt: list[ExcerptPart]


class FoundTurns(Document, frozen=True, kw_only=True):
    """The newest turns in which everything was found; there are `total` of them before the turn that was named."""

    total: int
    turns: list[FoundTurn]


class BranchCard(Document, frozen=True, kw_only=True):
    """A story that shares the past of this one up to the end of `turn`."""

    id: str
    title: str
    turn: int | None = None


class PanelView(Document, frozen=True, kw_only=True):
    """The panel beside a story: its parts, the endings found in any game of it, and the stories around this one."""

    parts: list[PanelTable]
    endings: list[str] = []
    """Their titles."""
    parent: BranchCard | None = None
    branches: list[BranchCard] = []


class StateNow(Document, frozen=True, kw_only=True):
    """The committed state, after the record `seq`."""

    seq: int
    state: dict[str, Any]


class PlanEntry(Document, frozen=True, kw_only=True):
    turn: int | None
    attempt: int
    narrator: str
    plan: dict[str, Any]
    success: bool | None
    failed: list[str]


class Problem(Document, frozen=True, kw_only=True):
    """A refused request: the error, and what to do."""

    error: str
    message: str
    suggestions: list[str] = []
