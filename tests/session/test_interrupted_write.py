"""`file_write` and `kill -9`: a call that is made again finds what it wrote, and an undo what it took back."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from scribing import RECEIPT, SESSION, Scribe, open_desk

from narratoria.events import Committed, EffectApplied
from narratoria.play.history import undo
from narratoria.play.resume import open_turn
from narratoria.play.turn import take_turn
from narratoria.store.fold import fold
from narratoria.store.journal import Journal


def killed_in_the_write(home: Path, prompt: str) -> None:
    script = Path(__file__).with_name("scribing.py")
    done = subprocess.run([sys.executable, script, home, prompt], timeout=60, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def effects(journal: Journal) -> list[EffectApplied]:
    records = journal.store.read(SESSION)
    return [one for record in records if isinstance(record.event, Committed) for one in record.event.effects]


async def test_a_call_killed_after_it_wrote_ends_as_one_left_alone(tmp_path: Path) -> None:
    told = {}
    for name in ("quiet", "disturbed"):
        home = tmp_path / name
        if name == "disturbed":
            killed_in_the_write(home, "rain")
            assert (home / "files" / "today.txt").read_text() == "rain"
        journal, registry = open_desk(home)
        left = open_turn(journal)
        assert (left is not None) == (name == "disturbed")
        result = await take_turn(journal.session, "rain", narrator=Scribe(), registry=registry, resume=left)
        view = fold(journal.store.read(SESSION)).told[-1]
        told[name] = (
            result.outcome,
            [(call.tool, call.state, call.error) for call in view.calls],
            [one.receipt for one in effects(journal)],
        )
        await undo(journal, registry)
        assert not (home / "files" / "today.txt").exists()
        await journal.close()
        journal.store.close()
    assert told["disturbed"] == told["quiet"]


async def test_a_strangers_file_with_the_same_content_is_in_the_way(tmp_path: Path) -> None:
    journal, registry = open_desk(tmp_path)
    (tmp_path / "files" / "today.txt").write_text("rain")
    args = {"path": "today.txt", "content": "rain"}
    result = await registry.execute("file_write", args, session=journal.session)
    assert result.error is not None
    assert result.error.code == "FILE_EXISTS"
    await journal.close()
    journal.store.close()


@pytest.mark.parametrize("earlier", [None, "sun"])
async def test_what_is_taken_back_already_counts_as_taken_back(tmp_path: Path, earlier: str | None) -> None:
    """As when the process ended between the compensation and the record of the undo."""
    journal, registry = open_desk(tmp_path)
    diary = tmp_path / "files" / "today.txt"
    if earlier is not None:
        diary.write_text(earlier)
    await take_turn(journal.session, "rain", narrator=Scribe(overwrite=True), registry=registry)
    assert [set(one.receipt) for one in effects(journal) if one.receipt] == [
        RECEIPT if earlier is None else {*RECEIPT, "before"}
    ]
    assert msgspec.to_builtins(effects(journal)[0])["reversible"]
    if earlier is None:
        diary.unlink()
    else:
        diary.write_text(earlier)
    outcome = await undo(journal, registry)
    assert (outcome.failed, outcome.compensated) == ([], ["The file holds the content"])
    assert (diary.read_text() if diary.exists() else None) == earlier
    await journal.close()
    journal.store.close()
