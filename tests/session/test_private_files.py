"""A home is its owner's alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from narratoria.session import Session
from narratoria.store.default_store import default_store


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def narratoria(home: Path, *arguments: str, umask: int = 0, words: str = "") -> None:
    """Run a command under a umask that gives everything away."""
    subprocess.run(
        [sys.executable, "-m", "narratoria", *arguments],
        env=os.environ | {"NARRATORIA_HOME": str(home)},
        input=words,
        text=True,
        check=True,
        capture_output=True,
        umask=umask,
        timeout=60,
    )


@pytest.mark.parametrize(
    "umask", [0o000, *(pytest.param(one, marks=pytest.mark.slow) for one in (0o022, 0o077))]
)
def test_everything_in_a_home_is_for_its_owner_only(tmp_path: Path, umask: int) -> None:
    home, exported = tmp_path / "new" / "home", tmp_path / "story.narratoria"
    narratoria(
        home, "play", "torch", "--terminal", "--narrator", "rules", umask=umask, words="light the torch\n"
    )
    store = default_store(home)  # held open, so that the log of the database is there to be looked at
    session = store.list()[0].id
    narratoria(home, "sessions", "export", session, str(exported), umask=umask)
    found = [home, *home.rglob("*")]
    assert {mode(one) for one in found if one.is_dir()} == {"0o700"}
    assert {one.name: mode(one) for one in found if one.is_file() and mode(one) != "0o600"} == {}
    assert {"sessions.db"} <= {one.name for one in found}
    assert mode(exported) == "0o600"
    store.close()


def test_a_home_of_an_earlier_version_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    narratoria(home, "play", "torch", "--terminal", "--narrator", "rules", words="look\n")
    home.chmod(0o755)
    (home / "sessions.db").chmod(0o644)
    default_store(home).close()
    assert (mode(home), mode(home / "sessions.db")) == ("0o700", "0o600")


@pytest.mark.parametrize("held", [[], ["notes.txt"]])
def test_an_existing_folder_is_closed_when_it_becomes_a_home(tmp_path: Path, held: list[str]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in held:
        (home / name).write_text("x")
    home.chmod(0o755)
    narratoria(home, "play", "torch", "--terminal", "--narrator", "rules", words="look\n")
    assert mode(home) == "0o700"


def test_a_folder_for_everybody_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    shared.chmod(0o1777)
    own.mkdir()
    own.chmod(0o755)
    monkeypatch.setenv("HOME", str(own))
    for home, before in ((shared, "0o1777"), (own, "0o755")):
        for _ in range(2):
            store = default_store(home)
            store.create(Session(assets=store.assets), story="torch", title="Torch")
            store.close()
            assert mode(home) == before
            assert mode(home / "sessions.db") == "0o600"
