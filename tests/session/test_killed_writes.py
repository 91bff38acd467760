"""Files and `kill -9`: the writes of a call that was killed are taken back before it runs again, or are listed."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from rewriting import LARGE, SESSION, STEPS, Rewriter, open_desk, prepare, registry, tree

from narratoria.events import Committed, Notice
from narratoria.play.history import abandon, undo
from narratoria.play.resume import open_turn
from narratoria.play.turn import take_turn
from narratoria.store.journal import Journal


def killed(home: Path, tool: str, steps: int) -> None:
    script = Path(__file__).with_name("rewriting.py")
    done = subprocess.run(
        [sys.executable, script, home, tool, str(steps)], timeout=60, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def notes(home: Path) -> list[Path]:
    return [path for path in (home / "assets" / "unfinished").rglob("*") if path.is_file()]


async def resumed(journal: Journal) -> None:
    left = open_turn(journal)
    assert left is not None
    result = await take_turn(
        journal.session, left.prompt, narrator=Rewriter(), registry=registry(), resume=left
    )
    assert result.outcome == "completed"


@pytest.mark.parametrize("steps", [1, 3, len(STEPS)])
async def test_a_call_that_was_killed_runs_again_on_the_files_it_found(tmp_path: Path, steps: int) -> None:
    prepare(tmp_path)
    before = tree(tmp_path)
    killed(tmp_path, "rewrite", steps)
    assert tree(tmp_path) != before
    assert notes(tmp_path)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in notes(tmp_path))
    journal = open_desk(tmp_path)
    await resumed(journal)
    assert tree(tmp_path)["log.txt"][1] == b"the first line\na line\nanother\n", "each line once"
    outcome = await undo(journal)
    assert not outcome.staying
    assert not outcome.not_taken_back
    assert tree(tmp_path) == before
    await journal.close()
    journal.store.close()
    assert not notes(tmp_path)


@pytest.mark.parametrize("move", ["undo", "abandon"])
async def test_a_turn_that_is_given_up_leaves_no_file(tmp_path: Path, move: str) -> None:
    prepare(tmp_path)
    before = tree(tmp_path)
    killed(tmp_path, "rewrite", len(STEPS))
    journal = open_desk(tmp_path)
    await (undo(journal) if move == "undo" else abandon(journal))
    assert tree(tmp_path) == before
    assert not notes(tmp_path)
    await journal.close()
    journal.store.close()


async def test_a_file_too_large_to_be_kept_is_listed(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "files" / "large.bin").write_bytes(LARGE)
    killed(tmp_path, "overwrite", 1)
    journal = open_desk(tmp_path)
    await resumed(journal)
    outcome = await undo(journal)
    assert [line.split(" (")[0] for line in outcome.irreversible] == ["overwrite: file large.bin overwritten"]
    assert "too many to be kept" in outcome.irreversible[0]
    told = [one.event.message for one in journal.store.read(SESSION) if isinstance(one.event, Notice)]
    assert any("large.bin" in message for message in told)
    await journal.close()
    journal.store.close()


async def test_a_file_that_somebody_changed_since_is_left_and_listed(tmp_path: Path) -> None:
    prepare(tmp_path)
    killed(tmp_path, "rewrite", 3)
    (tmp_path / "files" / "log.txt").write_text("somebody else's")
    journal = open_desk(tmp_path)
    outcome = await undo(journal)
    assert outcome.irreversible == ["a call: file log.txt overwritten (it was changed since then)"]
    assert tree(tmp_path)["log.txt"][1] == b"somebody else's"
    assert not (tmp_path / "files" / "new").exists()
    await journal.close()
    journal.store.close()


async def test_without_the_filesystem_the_files_are_listed_and_a_later_undo_has_them(tmp_path: Path) -> None:
    prepare(tmp_path)
    before = tree(tmp_path)
    killed(tmp_path, "rewrite", 3)
    journal = open_desk(tmp_path, bound=False)
    await abandon(journal)
    await journal.close()
    journal.store.close()
    assert not notes(tmp_path)
    journal = open_desk(tmp_path)
    outcome = await undo(journal)
    assert not outcome.staying
    assert tree(tmp_path) == before
    await journal.close()
    journal.store.close()


async def test_nothing_is_kept_beside_the_store_once_calls_are_saved(tmp_path: Path) -> None:
    prepare(tmp_path)
    journal = open_desk(tmp_path)
    await take_turn(journal.session, "rewrite", narrator=Rewriter(), registry=registry())
    assert not notes(tmp_path)
    kept = [one.event for one in journal.store.read(SESSION) if isinstance(one.event, Committed)]
    assert len(kept) == 1
    await journal.close()
    journal.store.close()
