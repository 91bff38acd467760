"""Lines typed at a terminal: editing, a history that is kept, and completion, by the standard library's readline."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.cells import cell_len

from narratoria.cli.stdin_lines import typed_line
from narratoria.session.private_files import FILE

try:
    import readline
except ImportError:  # a Python that was built without it
    readline = None  # type: ignore[assignment]

KEPT: Final = 1_000  # lines of history
_LONGEST: Final = 2_000  # characters of a line of history
_INTERRUPT: Final = "\x03"
_PROMPT: Final = "\x01\x1b[1;36m\x02> \x01\x1b[0m\x02"
_DRAWN: Final = "\x1b[1;36m> \x1b[0m"  # the same without readline's marks
_DISABLED: Final = b"\x00"  # of a terminal's special characters


class LineInterrupted(Exception):
    """Ctrl+C at the prompt. `empty` tells if nothing was typed."""

    def __init__(self, *, empty: bool) -> None:
        super().__init__("interrupted")
        self.empty = empty


def can_edit() -> bool:
    """Tell if lines can be edited here: a terminal on both sides, and readline."""
    if readline is None or sys.stdin is None or os.environ.get("TERM") in (None, "", "dumb"):
        return False
    try:
        return (sys.stdin.fileno(), sys.stdout.fileno()) == (0, 1) and os.isatty(0) and os.isatty(1)
    except (OSError, ValueError):
        return False


class History:
    """The newest lines, in a file that only its owner can read. Without a place to write, it lasts as long as we do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = self._read()

    def _read(self) -> list[str]:
        try:
            found = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        if len(found) > 2 * KEPT:
            with contextlib.suppress(OSError):
                self._write(os.O_TRUNC, "".join(f"{line}\n" for line in found[-KEPT:]))
        return found[-KEPT:]

    def add(self, line: str) -> bool:
        """Keep a line, unless it is the newest already; tell if it is new."""
        if not line.strip() or len(line) > _LONGEST or not line.isprintable():
            return False
        if self.lines and self.lines[-1] == line:
            return False
        self.lines = [*self.lines[1 - KEPT :], line]
        with contextlib.suppress(OSError):
            self._write(os.O_APPEND, f"{line}\n")
        return True

    def _write(self, how: int, text: str) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, FILE)
        try:
            os.fchmod(file, FILE)
            os.write(file, text.encode("utf-8", "replace"))
        finally:
            os.close(file)


class LineEditor:
    """Reads lines from the terminal. One at a time, from whatever thread: it may be left waiting when the process ends,
    and `restored` puts the terminal back then.
    """

    def __init__(self, history: History, completions: Callable[[str], Sequence[str]]) -> None:
        self.history = history
        self.completions = completions
        self._found: Sequence[str] = ()
        self.waiting = False  # for a line
        self._gnu = "libedit" not in (readline.__doc__ or "")
        readline.set_auto_history(False)
        readline.clear_history()
        for line in history.lines:
            readline.add_history(line)
        readline.set_completer(self._complete)
        readline.set_completer_delims("")  # a whole line is completed, not a word
        if self._gnu:
            readline.parse_and_bind("tab: complete")
            readline.parse_and_bind("set completion-ignore-case on")
            readline.parse_and_bind("set bell-style none")
            readline.parse_and_bind("set enable-bracketed-paste off")  # it would outlive us on the terminal
            # Keys without a meaning, and what a terminal says of itself too late, write nothing into the line.
            readline.parse_and_bind(r'"\e[": skip-csi-sequence')
            # Python runs handlers of signals only in the main thread, and we wait in another: Ctrl+C arrives as a
            # character instead, and ends the line.
            readline.parse_and_bind(r'"\C-c": "\C-q\C-c\C-m"')
        else:
            readline.parse_and_bind("bind ^I rl_complete")
        reconfigure = getattr(sys.stdin, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a slip must not end a game

    def read(self) -> str | None:
        """Return the next line, None at the end of the input; raise `LineInterrupted` after Ctrl+C."""
        sys.stdout.flush()
        begun, complete = typed_line()
        if complete:
            sys.stdout.write(f"{_DRAWN}{begun}\n")
            return self._remembered(begun)
        with self._keys():
            try:
                readline.set_startup_hook(lambda: readline.insert_text(begun))
                self.waiting = True
                line = input(_PROMPT if self._gnu else "> ")
            except EOFError:
                sys.stdout.write("\n")
                return None
            finally:
                self.waiting = False
                readline.set_startup_hook()
        if _INTERRUPT in line:
            raise LineInterrupted(empty=not line.replace(_INTERRUPT, "").strip())
        return self._remembered(line)

    def _remembered(self, line: str) -> str:
        if self.history.add(line):
            readline.add_history(line)
        return line

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Let something be printed above the line that is being typed; the prompt is drawn again below it."""
        if not self.waiting:
            yield
            return
        begun = readline.get_line_buffer()
        rows = cell_len(f"> {begun}") // max(1, shutil.get_terminal_size().columns)  # above the last
        up = f"\x1b[{rows}A" if rows else ""
        sys.stdout.write(f"\r{up}\x1b[J")
        sys.stdout.flush()
        yield
        sys.stdout.write(f"{_DRAWN}{begun}")
        sys.stdout.flush()

    @contextlib.contextmanager
    def _keys(self) -> Iterator[None]:
        """Show what is typed, and take Ctrl+C for a character, while a line is read.

        libedit edits only a terminal that echoes lines, and has no macro that would end the line: there Ctrl+C is a
        signal.
        """
        before = termios.tcgetattr(0)
        changed: list[Any] = [*before[:6], [*before[6]]]
        changed[3] |= termios.ECHO
        if self._gnu:
            changed[6][termios.VINTR] = _DISABLED
        else:
            changed[3] |= termios.ICANON
        termios.tcsetattr(0, termios.TCSANOW, changed)
        try:
            yield
        finally:
            termios.tcsetattr(0, termios.TCSANOW, before)

    def _complete(self, text: str, at: int) -> str | None:
        if at == 0:
            self._found = self.completions(text)
        return self._found[at] if at < len(self._found) else None


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Put the terminal back in the end as it was, even if a thread still waits for a line of it. In between, keys that
    are pressed while nobody reads are not echoed into the story; the next line begins with them.
    """
    before = termios.tcgetattr(0)
    quiet: list[Any] = [*before[:6], [*before[6]]]
    # Not by lines either: a Ctrl+D that is read ahead by lines is lost when readline changes to reading keys.
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
    termios.tcsetattr(0, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)
