"""The file of limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from narratoria.errors import NarratoriaError
from narratoria.kinds.shares.limits import default_limits, read_limits


def test_a_file_changes_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "shares.toml"
    file.write_text("wait_seconds = 5\n[player]\nprocesses = 3\n[tools.paint]\ncalls_per_minute = 30\n")
    limits, usual = read_limits(file, 2), default_limits(2)
    assert (limits.wait_seconds, limits.player.processes) == (5.0, 3)
    assert limits.tools["paint"].calls_per_minute == 30
    assert (limits.processes, limits.session) == (usual.processes, usual.session) == (16, usual.session)
    file.write_text("[session]\nprocesses = 3\n")
    assert read_limits(file, 2).session.cpu_seconds_per_hour is None, "a table is taken whole"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slots = 3", "unknown field `slots`"),
        ("[session]\nprocesses = 0", "`$.session.processes`"),
        ("[tools.paint]\nrate = 3", "unknown field `rate`"),
        ("processes", "is not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "shares.toml"
    file.write_text(text)
    with pytest.raises(NarratoriaError) as refused:
        read_limits(file, 2)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)
    with pytest.raises(NarratoriaError, match="cannot be read"):
        read_limits(tmp_path / "none.toml", 2)
