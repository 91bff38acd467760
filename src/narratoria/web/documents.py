"""What the API takes and gives, as JSON documents."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer."""


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A body; a key that is not known is a mistake, and is said so."""


# --- asked ---------------------------------------------------------------------------------------------


class NewSession(Request, frozen=True, kw_only=True):
    """Begin a story."""

    story: str


class Prompt(Request, frozen=True, kw_only=True):
    """What the player does. `origin` is `choice` where it is one of the offered choices."""

    prompt: str
    origin: Literal["player", "choice"] = "player"


class Undo(Request, frozen=True, kw_only=True):
    """Take back the turn `to` and every later one; the newest alone, when it is not named."""

    to: int | None = None
    imported: bool = False
    """Run the rollbacks that an imported file brought, too. Ask a person first."""


class Redo(Request, frozen=True, kw_only=True):
    """Bring back every turn undone, up to `to`: all of them, or none. The one undone last, when it is not named."""

    to: int | None = None


class Retry(Request, frozen=True, kw_only=True):
    """Take a turn again, with the same words or with others: that of the number `to`, with which every later one is
    taken back, or the newest."""

    prompt: str | None = None
    to: int | None = None


class BranchPoint(Request, frozen=True, kw_only=True):
    """The last turn the new session shares with this one, or the first it does not: `before`. The newest is shared
    when neither is named."""

    turn: int | None = None
    before: int | None = None


class NewCheckpoint(Request, frozen=True, kw_only=True):
    """Give the newest turn a name to come back to. A name used before moves here."""

    name: str


class Restore(Request, frozen=True, kw_only=True):
    """Take back every turn after this checkpoint."""

    checkpoint: str


class SettingsChange(Request, frozen=True, kw_only=True):
    """Only what is named changes."""

    narrator: str | None = None
    skills: dict[str, bool] = {}
    permissions: dict[str, bool] = {}


class SessionChange(Request, frozen=True, kw_only=True):
    """Only what is named changes."""

    title: str | None = None
    settings: SettingsChange | None = None


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


class SessionCard(Document, frozen=True, kw_only=True):
    """A saved session, with a glimpse of where the player was."""

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
    """What lets one browser in, once, as `?token=` of any page."""

    token: str
    seconds: int


class TurnNumber(Document, frozen=True, kw_only=True):
    """The turn this is about; what comes of it is on the stream."""

    turn: int


class UndoPreview(Document, frozen=True, kw_only=True):
    """What an undo would do, and what it could not. Ask a person first where `irreversible` is not empty."""

    turns: list[int]
    """Those that would be taken back, the newest first."""
    irreversible: list[str] = []
    """What reached outside and cannot be taken back."""
    compensated: list[str] = []
    """What would be taken back outside as well; a redo, which runs no tool, cannot do it again."""


class Undone(Document, frozen=True, kw_only=True):
    turn: int
    """The oldest that was taken back."""
    turns: list[int] = []
    irreversible: list[str] = []
    """What reached outside and cannot be taken back."""
    compensated: list[str] = []


class Redone(Document, frozen=True, kw_only=True):
    turn: int
    """The newest that was brought back."""
    turns: list[int] = []


class CheckpointCard(Document, frozen=True, kw_only=True):
    """A turn with a name."""

    name: str
    turn: int


class Restored(Document, frozen=True, kw_only=True):
    turn: int
    """The newest that counts now."""
    turns: list[int] = []
    """Those that were taken back, the newest first; none, where the story stood there already."""
    irreversible: list[str] = []
    """What reached outside and cannot be taken back."""
    compensated: list[str] = []


class ToolName(Document, frozen=True, kw_only=True):
    """What a tool is called before a player: its `title` where it has one, else what its `description` says."""

    name: str
    title: str = ""
    description: str = ""


class Skill(Document, frozen=True, kw_only=True):
    name: str
    description: str
    enabled: bool
    health: str = "healthy"


class Permission(Document, frozen=True, kw_only=True):
    name: str
    granted: bool


class Settings(Document, frozen=True, kw_only=True):
    narrator: str
    narrators: list[str]
    missing: dict[str, str] = {}
    """Narrators that cannot speak here, each with what it lacks."""
    skills: list[Skill]
    permissions: list[Permission]


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
    """Every refusal: what was wrong, and what to do."""

    error: str
    message: str
    suggestions: list[str] = []
