"""Records the games that later versions of Narratoria must still read: FILE. Run by hand when what is written changes.

    python tests/session/record_database.py tests/session/databases/version-3.db

Of the file that was there before, keep a copy under another name: games of that dialect are still about.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path

from digging import Outside, new_game, play
from mill_player import play as grind

from narratoria.play.history import undo
from narratoria.session import Session
from narratoria.store.sqlite import SqliteStore

TURNS = 14  # enough for snapshots in mid-game


async def record(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="narratoria-record-") as folder:
        store = SqliteStore(Path(folder) / "sessions.db")
        registry = Outside(Path(folder)).registry()
        session = Session("recorded", state={"start": True}, permissions=["begin"], assets=store.assets)
        journal = new_game(store, session, folder="/stories/digging")
        await play(journal, registry, "dig 1", "break 2", "dig 3", "ring 4", "dig 5")
        await undo(journal, registry)
        await journal.close()
        await grind(store, "milled", TURNS)  # tools in processes: their events are written in runs
        store.close()
        with sqlite3.connect(store.path) as connection:
            connection.execute("VACUUM")
        connection.close()
        target.write_bytes(store.path.read_bytes())


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))
