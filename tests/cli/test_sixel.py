"""Pictures in terminals that take sixels: they are asked, img2sixel makes them, and no key is lost."""

from __future__ import annotations

import shutil
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from narratoria.cli.sixel import LARGEST, MAKING_SECONDS, sixels, size_of, takes_sixels
from narratoria.cli.stdin_lines import keep_typed, typed_line

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1800, 900) + bytes(20)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xc2\x00\x11\x08\x01\x2c\x02\x58\x03"
GIF = b"GIF89a" + struct.pack("<HH", 320, 200)

needs_program = pytest.mark.skipif(
    shutil.which("img2sixel") is None, reason="needs img2sixel; scripts/test_needs.sh installs it"
)


def history(narratoria: Any) -> list[str]:
    return (narratoria.folder / "history").read_text().splitlines()


@needs_program
def test_a_terminal_that_says_so_gets_sixels_and_keys_pressed_meanwhile_are_kept(
    narratoria: Any, at_terminal: Any
) -> None:
    game = at_terminal(answer="lo\x1b[?64;1;4;22c\x1b[Aok\rwarm my ha")
    game.sees("> ")
    game.type("light the torch\r")
    game.sees("\x1bP")
    picture = game.sees("\x1b\\")
    assert picture.partition("q")[2].startswith('"1;1;') and len(picture) > 1000
    game.sees("◆ A burning torch")
    game.sees("look")
    game.sees("> ")
    game.sees("warm my ha")
    game.type("nds\r")
    game.sees("> ")
    game.type("take the torch\rlight the torch\r/quit\r")
    assert game.ended() == 0
    assert game.asked == 1
    assert history(narratoria)[:3] == ["light the torch", "look", "warm my hands"]
    assert narratoria.leaves_nothing()


@needs_program
def test_a_terminal_that_says_no_or_answers_late_gets_the_path(narratoria: Any, at_terminal: Any) -> None:
    game = at_terminal()  # silent for now
    game.sees("> ")
    game.type("light the torch\r")
    told = game.sees("◆ A burning torch")
    assert "\x1bP" not in told and game.asked == 1
    game.sees("> ")
    game.type("lo\x1b[?64;1;4;22cok\r/quit\r")
    assert game.ended() == 0
    assert history(narratoria) == ["light the torch", "look", "/quit"]
    other = at_terminal(answer="\x1b[?64;1;2c")
    other.sees("> ")
    other.type("light the torch\r")
    assert "\x1bP" not in other.sees("◆ A burning torch")
    other.type("/quit\r")
    assert other.ended() == 0 and other.asked == 1


def test_without_the_program_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not takes_sixels()
    assert sixels(tmp_path / "a.png", PNG, (100, 100)) == ""


@pytest.mark.parametrize(
    "script",
    ["exit 1", "echo no picture", "printf '\\033P'; exec cat /dev/zero", "printf '\\033P'; exec sleep 60"],
    ids=["fails", "other output", "endless", "hangs"],
)
def test_a_program_that_misbehaves_costs_a_bounded_time(
    script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "img2sixel"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    began = time.monotonic()
    assert sixels(tmp_path / "a.png", PNG, (100, 100)) == ""
    assert time.monotonic() - began < MAKING_SECONDS + 5


@needs_program
def test_a_picture_that_is_too_large_is_made_smaller(tmp_path: Path) -> None:
    ppm = tmp_path / "a.ppm"
    ppm.write_bytes(b"P6\n200 100\n255\n" + bytes(200 * 100 * 3))
    # The size is read from what is given, the picture from the file.
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 200, 100)
    made = sixels(ppm, png, (50, 50))
    assert '"1;1;50;25' in made and len(made) < LARGEST
    assert '"1;1;200;100' in sixels(ppm, png, (640, 360))


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (PNG, (1800, 900)),
        (JPEG, (600, 300)),
        (GIF, (320, 200)),
        (b"<svg/>", None),
        (b"\xff\xd8\xff", None),
        (PNG[:20], None),
        (b"\xff\xd8" + b"\xff\xe0\x00\x00" * 3, None),
    ],
)
def test_the_size_of_a_picture_is_read(content: bytes, size: tuple[int, int] | None) -> None:
    assert size_of(content) == size


def test_keys_that_edit_are_not_kept() -> None:
    keep_typed("sé\x1b[A\x1bOP\x01\x7fe\r\n\x1b[?1;2c".encode())
    assert typed_line() == ("sée", True)
    assert typed_line() == ("", False)
