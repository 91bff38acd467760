"""How a path becomes a command, and what is said when it cannot."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from narratoria.errors import NOT_EXECUTABLE, TOOL_NOT_FOUND
from narratoria.kinds.process.launch import NotExecutable, ToolMissing, command_for


def make(path: Path, content: bytes | str, mode: int = 0o644) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def test_an_executable_runs_as_it_is(tmp_path: Path) -> None:
    script = make(tmp_path / "tool", "#!/bin/sh\n", 0o755)
    assert command_for(script) == [str(script)]
    assert command_for(Path("/bin/true")) == ["/bin/true"]


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "tool", "#!/bin/sh\n", 0o755)
    monkeypatch.chdir(tmp_path)
    assert command_for(Path("tool")) == [str(tmp_path / "tool")]


def test_without_a_run_bit_the_shebang_decides(tmp_path: Path) -> None:
    script = make(tmp_path / "tool.py", "#!/bin/bash -e -u\n")
    assert command_for(script) == ["/bin/bash", "-e -u", str(script)]  # one argument, as the kernel does it


def test_a_python_script_without_packages_runs_in_our_own_python(tmp_path: Path) -> None:
    """The `python3` on the PATH may be a script that looks for the real one, at each call."""
    for flags in ("-S", "-I -S", "-BS -u"):
        script = make(tmp_path / "tool", f"#!/usr/bin/env -S python3 {flags}\n", 0o755)
        assert command_for(script) == [sys.executable, *flags.split(), str(script)]
    for line in (
        "env python3",
        "env -S python3",
        "env -S python3 -I",
        "env -S A=1 python3 -S",
        "env -S python3 -S -X dev",
    ):
        script = make(tmp_path / "tool", f"#!/usr/bin/{line}\n", 0o755)
        assert command_for(script) == [str(script)], line


def test_without_run_bit_and_shebang_the_suffix_decides(tmp_path: Path) -> None:
    assert command_for(make(tmp_path / "a.py", "print()")) == [sys.executable, str(tmp_path / "a.py")]
    assert command_for(make(tmp_path / "a.sh", "true"))[0].endswith("/bash")
    assert command_for(make(tmp_path / "b.py", "print()", 0o755)) == [sys.executable, str(tmp_path / "b.py")]


def test_a_shebang_that_leads_nowhere_gives_way_to_a_known_suffix(tmp_path: Path) -> None:
    script = make(tmp_path / "a.py", "#!/no/such/python\n", 0o755)
    assert command_for(script) == [sys.executable, str(script)]
    script = make(tmp_path / "b.py", "#!/usr/bin/env no-such-python\n")
    assert command_for(script) == [sys.executable, str(script)]


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        ("", 0o755, "is empty"),
        ("echo hello", 0o755, "no shebang"),
        ("echo hello", 0o644, "no shebang"),
        (b"\x7fELF\x02\x01", 0o644, r"chmod \+x"),
        ("#!/no/such/interpreter\n", 0o755, "/no/such/interpreter, which does not exist"),
        ("#!/usr/bin/env no-such-thing\n", 0o755, "no-such-thing, which is not on the PATH"),
        ("#!\n", 0o755, "no interpreter"),
        ("#!/bin/sh\r\necho\r\n", 0o755, "Unix line endings"),
    ],
)
def test_what_is_no_program_is_refused_with_advice(
    tmp_path: Path, content: bytes | str, mode: int, says: str
) -> None:
    with pytest.raises(NotExecutable, match=says) as caught:
        command_for(make(tmp_path / "tool", content, mode))
    assert caught.value.code == NOT_EXECUTABLE
    assert str(tmp_path / "tool") in str(caught.value)


def test_a_suffix_without_its_interpreter_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = make(tmp_path / "tool.rb", "puts")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotExecutable, match="needs ruby, which is not on the PATH"):
        command_for(script)


def test_missing_files_and_broken_links(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="there is no tool at") as caught:
        command_for(tmp_path / "nothing")
    assert caught.value.code == TOOL_NOT_FOUND
    with pytest.raises(ToolMissing, match="not a path"):
        command_for(Path("a\0b"))
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(ToolMissing, match=r"is a link to .*gone, which does not exist"):
        command_for(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(ToolMissing):
        command_for(tmp_path / "file" / "below")


def test_folders_fifos_and_loops_are_refused_without_blocking(tmp_path: Path) -> None:
    with pytest.raises(NotExecutable, match="is a folder"):
        command_for(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotExecutable, match="not a regular file"):
        command_for(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(NotExecutable, match="cannot be used: Too many levels of symbolic links"):
        command_for(tmp_path / "loop")
