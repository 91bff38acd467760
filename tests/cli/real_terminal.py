"""A real terminal for tests: a person's keys go in, the screen comes out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path
from typing import Any

from tests import warm_start

TORCH = Path(__file__).resolve().parents[2] / "stories" / "torch"
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x01\x02]")
COLUMNS = 100
QUESTION = "\x1b[c"  # what are you?


class Terminal:
    """A game on a terminal of its own: keys go in, the screen comes out."""

    def __init__(
        self, narratoria: Any, *arguments: object, command: str = "play", answer: str = "", **env: str
    ) -> None:
        """Start a game. `answer` is what the terminal says when it is asked what it is."""
        self.answer = answer
        self.asked = 0  # times
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 9 * COLUMNS, 720))
        self.before = termios.tcgetattr(theirs)
        kept = {**narratoria.env, "TERM": "xterm-256color"}
        for name in ("KITTY_WINDOW_ID", "TERM_PROGRAM", "LC_TERMINAL", "TMUX", "STY", "KONSOLE_VERSION"):
            kept.pop(name, None)
        self.process = warm_start.Started(
            *(command, *arguments, "--terminal", "--narrator", "rules"),
            stdin=theirs, stdout=theirs, stderr=theirs, env={**kept, **env}, cwd=narratoria.folder,
            terminal=True,
        )  # fmt: skip
        self.theirs = theirs
        self.seen = ""
        self.raw = ""
        self.everything = ""

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def sees(self, text: str, within: float = 30.0) -> str:
        """Read until the text comes; return what was before it, and forget both."""
        until = time.monotonic() + within
        while text not in self.seen:
            left = until - time.monotonic()
            assert left > 0, f"{text!r} did not come; the terminal shows {self.seen!r}"
            if select.select([self.ours], [], [], left)[0]:
                self._read()
        before, _, rest = self.seen.partition(text)
        self.raw = self.seen = rest
        return before

    def _read(self) -> None:
        piece = os.read(self.ours, 65536).decode(errors="replace")
        if QUESTION in self.raw[-len(QUESTION) + 1 :] + piece:
            self.asked += 1
            self.type(self.answer)
        self.raw += piece
        self.everything += piece
        self.seen = CONTROLS.sub("", self.raw)

    def ended(self) -> int:
        until = time.monotonic() + 20
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it goes on: {self.seen!r}"
            if select.select([self.ours], [], [], 0.05)[0]:
                self._read()
        return self.process.returncode

    def screen(self) -> list[str]:
        """The lines a person sees, those scrolled away included."""
        return drawn(self.everything)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


def drawn(text: str) -> list[str]:
    """Lines on a terminal after this text: what moves the cursor and what deletes is done, styles are left out."""
    rows: list[list[str]] = [[]]
    x = y = 0
    for code, how, letter in re.findall(r"(\x1b\[([0-9;?]*)([A-Za-z])|[^\x01\x02\x1b])", text):
        count = int(how) if how.isdecimal() else 0
        if code == "\r":
            x = 0
        elif code == "\n":
            y += 1
        elif code == "\b":
            x -= 1
        elif letter == "A":
            y -= count or 1
        elif letter == "C":
            x += count or 1
        elif letter == "K":
            del rows[y][0 if count == 2 else x :]
        elif letter == "J":
            del rows[y][x:], rows[y + 1 :]
        elif not letter:
            if x == COLUMNS:
                x, y = 0, y + 1
            rows += [[] for _ in range(y + 1 - len(rows))]
            rows[y] += [" "] * (x + 1 - len(rows[y]))
            rows[y][x] = code
            x += 1
        rows += [[] for _ in range(y + 1 - len(rows))]
    return ["".join(row).rstrip() for row in rows]
