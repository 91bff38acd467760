"""The tables of a store in SQL, and the upgrades between their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from narratoria.errors import JournalError
from narratoria.store.sql_reading import ReaderWithin
from narratoria.store.store import SCHEMA_VERSION
from narratoria.store.writer import Database

# `{…}` is what the two dialects call differently. Records lie in batches; nothing is ever changed in one.
SCHEMA: Final = (
    """CREATE TABLE sessions (
        key {key}, id TEXT NOT NULL UNIQUE, story TEXT, title TEXT, folder TEXT,
        created {real} NOT NULL, updated {real} NOT NULL, turns {int} NOT NULL, last_seq {int} NOT NULL,
        bytes {int} NOT NULL, parent {int}, parent_turn {int}, parent_seq {int},
        hidden {int} NOT NULL DEFAULT 0, chained {int}, head {blob},
        seal {blob})""",
    """CREATE TABLE batches (
        session {int} NOT NULL, last_seq {int} NOT NULL, first_seq {int} NOT NULL, data {blob} NOT NULL,
        checksum {blob}, PRIMARY KEY (session, last_seq)){clustered}""",
    """CREATE TABLE turns (
        session {int} NOT NULL, turn {int} NOT NULL, first_seq {int} NOT NULL, last_seq {int},
        seal {blob}, PRIMARY KEY (session, turn)){clustered}""",
    """CREATE TABLE snapshots (
        session {int} NOT NULL, seq {int} NOT NULL, data {blob} NOT NULL, checksum {blob},
        PRIMARY KEY (session, seq)){clustered}""",
    """CREATE TABLE assets (
        session {int} NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (session, hash)){clustered}""",
)
# What leads from the version before to this one. Older rows have no checksum until they are written again.
MIGRATIONS: Final = {
    2: ("ALTER TABLE sessions ADD COLUMN folder TEXT",),
    3: (
        "ALTER TABLE sessions ADD COLUMN chained {int}",
        "ALTER TABLE sessions ADD COLUMN head {blob}",
        "ALTER TABLE sessions ADD COLUMN seal {blob}",
        "ALTER TABLE batches ADD COLUMN checksum {blob}",
        "ALTER TABLE turns ADD COLUMN seal {blob}",
        "ALTER TABLE snapshots ADD COLUMN checksum {blob}",
    ),
}
TABLES: Final = ("batches", "turns", "snapshots", "assets")


def upgrade(database: Database, found: int, words: Mapping[str, str]) -> None:
    """Bring the tables of version `found` to the present one, inside the caller's transaction."""
    for number in range(found + 1, SCHEMA_VERSION + 1):
        for statement in MIGRATIONS[number]:
            database.execute(statement.format(**words))
    if found < 2:
        for key, turns in standing_turns(database).items():
            database.execute("UPDATE sessions SET turns = ? WHERE key = ?", (turns, key))


def standing_turns(database: Database) -> dict[int, int]:
    """Return the number of standing turns of each session, by its key: version 1 counted undone turns and the opening
    too.

    A session whose records do not make a game is left out.
    """
    found: dict[int, int] = {}
    reader = ReaderWithin(database)
    for key, name in database.execute("SELECT key, id FROM sessions WHERE hidden = 0"):
        try:
            found[int(key)] = reader.timeline(name).standing
        except (JournalError, ValueError, LookupError, TypeError):
            continue
    return found
