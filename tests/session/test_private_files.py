"""A home is its owner's alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
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


def test_a_home_of_an_earlier_version_is_closed_and_another_folder_is_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    narratoria(home, "play", "torch", "--terminal", "--narrator", "rules", words="look\n")
    home.chmod(0o755)
    (home / "sessions.db").chmod(0o644)
    default_store(home).close()
    assert (mode(home), mode(home / "sessions.db")) == ("0o700", "0o600")
    other = tmp_path / "other"
    other.mkdir(0o755)
    other.chmod(0o755)
    default_store(other).close()
    assert mode(other) == "0o755"
