"""The store of sessions: one interface for the embedded store (SQLite) and the shared one (PostgreSQL)."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypedDict, Unpack

import msgspec
import platformdirs

from narratoria.errors import JournalError
from narratoria.events import AssetStored
from narratoria.session.assets import AssetStore
from narratoria.session.record import Record
from narratoria.session.resources.resources import ResourceRegistry
from narratoria.session.session import Session

if TYPE_CHECKING:
    from narratoria.store.journal import Journal
    from narratoria.store.timeline import Timeline

SCHEMA_VERSION: Final = 3
LARGEST: Final = 1 << 53
"""A number of a turn or of a record is less; JavaScript and any database can hold those."""
_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def is_plain_id(session_id: str) -> bool:
    """Tell if an id may be part of a file name as it is."""
    return _ID.fullmatch(session_id) is not None


def notes_folder(assets: AssetStore, session_id: str) -> Path:
    """Return the folder of a session's notes on writes that are not final, on this machine."""
    name = session_id if is_plain_id(session_id) else hashlib.sha256(session_id.encode()).hexdigest()
    return assets.root / "unfinished" / name


class SessionUnknown(JournalError, KeyError):
    """There is no session of that id."""

    __str__ = Exception.__str__  # KeyError would put quotes around the sentence


class TurnUnknown(JournalError):
    """The session has no turn of that number."""


class JournalDamaged(JournalError):
    """Something in a store is not what was written; the message says what is whole, and what to do."""


class SessionMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Data about a session that needs no folding."""

    id: str
    story: str | None = None
    title: str | None = None
    folder: str | None = None  # where the story lay, if on no shelf of this machine
    created: float = 0.0
    updated: float = 0.0
    turns: int = 0  # how many stand: neither those taken back nor the opening
    last_seq: int = 0
    bytes: int = 0  # what its records take in the store
    parent: str | None = None
    parent_turn: int | None = None
    damaged: bool = False  # some of the above is not what was written

    @property
    def begun(self) -> bool:
        """False for a game whose process ended before its opening: it has only its first record."""
        return self.story is None or self.parent is not None or self.last_seq > 1


class TurnSpan(msgspec.Struct, frozen=True):
    """The range of a turn's records. `last` is None while the turn is open."""

    turn: int
    first: int
    last: int | None


Metas = list[SessionMeta]  # inside the classes, `list` is the method
Records = list[Record]
Spans = list[TurnSpan]
Faults = list[str]


class AboutSession(TypedDict, total=False):
    """The labels of a new session, as in `SessionMeta`."""

    story: str | None
    title: str | None
    folder: str | None
    owner: str | None  # the player it is private to, in a store that several players use


class OutsideWorld(TypedDict, total=False):
    """Parts of a restored session that no journal has."""

    resources: ResourceRegistry | None
    clock: Callable[[], float] | None


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an import."""

    owner: str | None = None  # the player it will be private to, as in `AboutSession`
    lacking: bool = False  # an asset without content is referred to all the same
    accepted: Callable[[], Iterable[AssetStored]] = tuple
    """Called once the records are found to make a game; returns the assets whose content it has put into the store."""
    step: Callable[[], None] = lambda: None  # called during the fold; it gives up by raising `Unfit`


PLAIN_ADOPTION: Final = Adoption()


class Store(Protocol):
    """Sessions and their journals. Methods block briefly; a server calls them in a thread where that matters.

    They raise `JournalError` if something cannot be read or written, `SessionBusy` if another writer has the session.
    """

    assets: AssetStore
    remedy: str
    """The advice that an error about damage ends with."""

    @property
    def database_file(self) -> Path | None:
        """The file that holds everything but the assets, which can be salvaged; None for a store without one."""

    def create(self, session: Session | None = None, **about: Unpack[AboutSession]) -> Journal:
        """Store a new session, and open it for writing. Its present content is its beginning."""

    def open(self, session_id: str, **world: Unpack[OutsideWorld]) -> Journal:
        """Restore a session and open it for writing: `journal.session` is the world as it was recorded."""

    def restore(self, session_id: str, *, upto: int | None = None) -> Session:
        """Return the session as it was at record `upto` (the newest), for reading: nothing is attached or locked."""

    def meta(self, session_id: str) -> SessionMeta: ...

    def list(self) -> Metas:
        """All sessions, the one changed last first."""

    def find(self, prefix: str) -> SessionMeta:
        """Return the one session whose id begins with `prefix`."""

    def rename(self, session_id: str, title: str) -> None: ...

    def relocate(self, session_id: str, folder: str | None) -> None:
        """Look for the session's story in another folder from now on."""

    def delete(self, session_id: str) -> None:
        """Delete a session. The past that its branches share stays until they are deleted too."""

    def branch(
        self, session_id: str, turn: int, *, title: str | None = None, owner: str | None = None
    ) -> SessionMeta:
        """Make a session that shares the past of `session_id` up to the end of `turn`. No record is copied."""

    def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Iterator[Record]:
        """The records after sequence number `after`, in order, those shared with a parent included."""

    def read_turn(self, session_id: str, turn: int) -> Records: ...

    def sharing(self, session_id: str, turn: int) -> dict[str, Timeline]:
        """The other sessions whose past has this very turn, taken back or not, each with its timeline."""

    def turns(self, session_id: str) -> Spans: ...

    def adopt(
        self, meta: SessionMeta, records: Iterable[Record], how: Adoption = PLAIN_ADOPTION
    ) -> SessionMeta:
        """Store a session that was recorded elsewhere: all of it, or nothing if `records` or `accepted` fails."""

    def snapshots(self, session_id: str) -> Iterator[tuple[int, bytes]]:
        """The snapshots of a session and of the past it shares, by their record, oldest first, packed."""

    def unchecked(self, session_id: str) -> int:
        """Return how many of a session's records were written before there were checksums."""

    def listed_assets(self, session_id: str) -> tuple[int, set[str]]:
        """Return the assets listed for the records that a session does not share, and the last that it shares."""

    def table_faults(self) -> Faults:
        """Return what is wrong with the tables as such, whatever session it concerns."""

    def sweep(self) -> int:
        """Remove the remains of interrupted `adopt`s; return their number."""

    def asset_hashes(self, session_id: str | None = None) -> set[str]:
        """Return the assets that a session, or any session, refers to."""

    def close(self) -> None: ...


def data_home() -> Path:
    """Return the folder of a player's own data: NARRATORIA_HOME, or the platform's user data."""
    chosen = os.environ.get("NARRATORIA_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("narratoria")


def unwritable(path: Path, why: OSError | str) -> str:
    """Return the message for a folder where sessions cannot be kept."""
    if isinstance(why, OSError):
        if why.errno == errno.ENOSPC:
            return f"{path}: the disk is full; make room, then try again"
        why = why.strerror or str(why)
    return f"{path} cannot be written ({why}); make it writable, or set NARRATORIA_HOME to a folder that is"
