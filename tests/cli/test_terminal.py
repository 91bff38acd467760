"""A person at a real terminal: editing, history, completion, Ctrl+C, progress and pictures."""

from __future__ import annotations

import asyncio
import base64
import os
import pty
import signal
import stat
import struct
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.real_terminal import COLUMNS, TORCH

from narratoria.cli.line_editor import KEPT, History
from narratoria.cli.pictures import picture_sequence, protocol_of
from narratoria.cli.stdin_lines import in_daemon_thread, read_line

LONG = " ".join(["and dig on"] * 12 + ["to the clay"])
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1800, 900) + bytes(20)


def slow_story(folder: Path) -> Path:
    """A story with a tool that works until it is stopped."""
    story = folder / "slow"
    (story / "tools").mkdir(parents=True)
    (story / "story.toml").write_text(
        'title = "Slow"\npremise = "Digging."\n[opening]\nnarrative = "A field."\nchoices = ["Dig"]\n'
    )
    (story / "narrator.toml").write_text(
        f'[[rule]]\nid = "dig"\npatterns = ["dig"]\nnarrative = "You dig {LONG}."\n'
        'calls = [{ id = "dig", tool = "tools/digger" }]\n'
        '[[rule]]\nid = "look"\npatterns = ["look"]\nnarrative = "A field, as before."\n'
    )
    tool = story / "tools" / "digger"
    tool.write_text(
        "#!/bin/bash\n"
        """echo '{"version":"0","type":"log","level":"info","message":"Earth flies.","fields":{"progress":0.5}}'\n"""
        "sleep 60 & wait\n"
    )
    tool.chmod(0o755)
    return story


def test_a_line_is_edited_completed_and_remembered(narratoria: Any, at_terminal: Any) -> None:
    game = at_terminal()
    game.sees("> ")
    game.type("xight the torch\x01\x04l\r")  # to the beginning, delete, an l
    game.sees("burns low and")
    game.sees("> ")
    game.type("ex\t")
    game.sees("Examine the door")
    game.type("\r")
    game.sees("> ")
    game.type("\x1b[A\x1b[A")  # up, up
    game.sees("light the torch")
    game.type("\r")
    game.sees("> ")
    game.type("/st\t")
    game.sees("/state")
    game.type("\r\x04")
    game.sees("lit: true")
    assert game.ended() == 0
    kept = narratoria.folder / "history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text().splitlines() == [
        "light the torch",
        "Examine the door",
        "light the torch",
        "/state",
    ]
    again = at_terminal()
    again.sees("> ")
    again.type("\x1b[A")
    again.sees("/state")
    again.type("\r/quit\r")
    assert again.ended() == 0


def test_an_interrupt_stops_the_turn_and_not_the_game(narratoria: Any, at_terminal: Any) -> None:
    game = at_terminal(slow_story(narratoria.folder))
    game.sees("> ")
    game.type("dig\r")
    assert "to the clay." in game.sees("Earth flies.")  # the narration so far is wrapped, not cut
    game.type("\x03")
    told = game.sees("the turn was stopped")
    assert "digger" not in told
    game.sees("> ")
    game.type("look\r")
    game.sees("A field, as before.")
    game.type("\x04")
    assert game.ended() == 0
    assert narratoria.leaves_nothing()


def test_a_second_interrupt_ends_the_game(narratoria: Any, at_terminal: Any) -> None:
    game = at_terminal(slow_story(narratoria.folder))
    game.sees("> ")
    game.type("dig\r")
    game.sees("Earth flies.")
    game.type("\x03")
    time.sleep(0.1)  # the terminal makes one signal of two at once
    game.type("\x03")
    assert game.ended() == 130
    assert termios.tcgetattr(game.theirs) == game.before
    assert narratoria.leaves_nothing()


def test_at_the_prompt_an_interrupt_drops_the_line_and_two_on_an_empty_one_end(at_terminal: Any) -> None:
    game = at_terminal()
    game.sees("> ")
    game.type("half a thought\x03")
    game.sees("> ")
    game.type("\x03")
    game.sees("Ctrl+C again ends the game")
    game.sees("> ")
    game.type("\x03")
    assert game.ended() == 130
    assert termios.tcgetattr(game.theirs) == game.before


def test_words_after_an_ending_are_answered_and_the_ending_is_told_once(at_terminal: Any) -> None:
    game = at_terminal()
    game.sees("> ")
    game.type("leave\r")
    game.sees("✦")
    game.sees("the story is over · /undo takes the last turn back")
    game.sees("> ")
    game.type("light the torch\r")
    told = game.sees("> ")
    assert "✦" not in told and len(told.split()) > 6  # what was typed, and an answer
    game.type("/state ending\r/undo\r")
    game.sees("undone")
    game.type("/quit\r")
    assert game.ended() == 0


def test_events_and_notices_of_dev_stand_above_the_line_that_is_typed(
    narratoria: Any, at_terminal: Any
) -> None:
    story = slow_story(narratoria.folder)
    digger = story / "tools" / "digger"
    digger.write_text(
        "#!/bin/bash\nfor i in 1 2 3; do\n"
        """echo '{"version":"0","type":"log","level":"info","message":"Earth '$i'","fields":{"progress":0.'$i'}}'\n"""
        """sleep 0.5; done\necho '{"version":"0","type":"done","ok":true}'\n"""
    )
    rules = story / "narrator.toml"
    game = at_terminal(story, command="dev")
    game.sees("> ")
    game.type("dig\r")
    game.sees("━ Earth 2")  # progress, while it runs
    game.sees("✓ digger")
    game.sees("> ")
    half = "look at all this " + "mud " * 30
    game.type(half)
    game.sees(half[-COLUMNS // 2 :].rstrip())
    rules.write_text(rules.read_text().replace("as before", "as ever").replace('["look"]', '["look ..."]'))
    game.sees("narrator.toml saved; the story goes on with it")
    game.sees("mud")  # the line is shown again
    game.type("here\r")
    game.sees("A field, as ever.")
    screen = game.screen()
    assert [line for line in screen if "Earth" in line] == [
        f'  digger info Earth {number} {{"progress":0.{number}}}' for number in (1, 2, 3)
    ]
    assert not any("━" in line for line in screen)
    at = next(at for at, line in enumerate(screen) if "narrator.toml saved" in line)
    assert screen[at + 1] + screen[at + 2] == f"> {half}here"
    assert not any("mud" in line for line in screen[:at])
    game.type("\x04")
    assert game.ended() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_game_that_waits_for_a_line(at_terminal: Any, number: int, code: int) -> None:
    game = at_terminal()
    game.sees("> ")
    game.process.send_signal(number)
    assert game.ended() == code
    assert termios.tcgetattr(game.theirs) == game.before


def test_an_empty_line_does_nothing_and_a_picture_is_shown_by_kitty(at_terminal: Any) -> None:
    game = at_terminal(KITTY_WINDOW_ID="1")
    game.sees("> ")
    game.type("\r")
    assert game.sees("> ").strip() == ""
    game.type("light the torch\r")
    game.sees("\x1b_Ga=T,f=100,q=2,")
    data = game.sees("\x1b\\").partition(";")[2]
    assert base64.b64decode(data[:64]).startswith(b"\x89PNG")
    game.sees("◆ A burning torch")
    game.type("/quit\r")
    assert game.ended() == 0


def test_no_picture_goes_where_there_is_no_terminal(narratoria: Any) -> None:
    played = narratoria(
        "play", TORCH, "--terminal", "--narrator", "rules", stdin="light the torch\n", KITTY_WINDOW_ID="1"
    )
    assert "\x1b" not in played.out and "A burning torch" in played.out


@pytest.mark.parametrize(
    ("env", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "3"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230804"}, "kitty"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "210804"}, None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "3", "TMUX": "/tmp/x"}, None),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_terminals_that_show_pictures_are_known_by_their_environment(
    env: dict[str, str], protocol: str | None
) -> None:
    assert protocol_of(env) == protocol


def test_a_large_picture_is_fitted_and_only_known_formats_are_sent() -> None:
    sent = picture_sequence(PNG, "kitty", 60, (10, 20))
    assert "c=60" in sent and sent.startswith("\x1b_G") and sent.endswith("\x1b\\")
    parts = picture_sequence(PNG + bytes(10_000), "kitty", 60).split("\x1b\\")
    assert len(parts) > 3 and all(len(part) < 4200 for part in parts)
    assert picture_sequence(b"\xff\xd8\xff\xe0", "kitty", 60) == ""
    assert "width=auto" in picture_sequence(b"GIF89a", "iterm", 60)
    assert picture_sequence(b"<svg/>", "iterm", 60) == ""


def test_the_history_is_bounded_and_survives_a_missing_place(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"line {number}\n" for number in range(3 * KEPT)))
    history = History(path)
    assert len(history.lines) == KEPT == len(path.read_text().splitlines())
    assert not history.add(history.lines[-1])
    assert not history.add("\x03")
    assert history.add("new")
    assert History(path).lines[-1] == "new" and len(history.lines) == KEPT
    assert History(tmp_path / "no" / "where").add("kept for now")


async def test_a_line_nobody_waits_for_any_more_is_for_the_next_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    settings = termios.tcgetattr(theirs)
    with os.fdopen(theirs) as stdin, os.fdopen(ours, "w") as keys:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await in_daemon_thread(read_line)
        waiting = asyncio.create_task(in_daemon_thread(read_line))
        while not termios.tcgetattr(theirs)[3] & termios.ECHO:  # what is typed is shown
            await asyncio.sleep(0.01)
        keys.write("for the second\n")
        keys.flush()
        assert await waiting == "for the second"
        assert termios.tcgetattr(theirs) == settings
