"""The narration in a terminal while it is being written, and the models that did not answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import monotonic
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table

from narratoria.cli.output import printable, styled
from narratoria.events import (
    CallEmitted,
    CallFinished,
    CallStarted,
    Log,
    Narration,
    NarrationDelta,
    PlanRefused,
    TurnCommitted,
    TurnStarted,
)
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Narrator
from narratoria.play.turn_types import TurnResult
from narratoria.session import Record

WIDTH: Final = 88
THINKING: Final = "The narrator is thinking…"
_SOON: Final = 0.15  # seconds: a shorter wait is none
_REJECTED: Final = "plan rejected: "
_PLACES: Final = re.compile(r"(?<!\S)\$[.\w\[\]]*: ")
_AT_ONCE: Final = 5  # calls shown while they run, the newest
_WHY: Final = 200  # characters of a narrator's reason
_IN_WORDS: Final = {"llm": "the language model", "local": "the model on this machine"}


def prose(text: str) -> RenderableType:
    return Padding(Constrain(Markdown(printable(text)), WIDTH - 4), (0, 2))


class LiveNarration:
    """Shows the pieces of a narration as they come, below everything else; the caller prints the final text.

    Only a terminal can take a word back, so only there anything is shown before it is final. Until the first word,
    but not before the time in which most turns end, it says that the narrator is thinking; while tools work, what they
    last said of it, with a bar if they said how far they are.
    """

    def __init__(self, out: Console) -> None:
        self.out = out
        self.text = ""
        self._work: dict[str, _Work] = {}  # by call
        self._live: Live | None = None
        self._since = 0.0
        self._spinner = Spinner("dots", styled((THINKING, "dim")), style="dim")
        self._wheel = Spinner("dots", style="dim")

    def push(self, record: Record) -> None:
        event = record.event
        if not self.out.is_terminal:
            return
        if isinstance(event, TurnStarted):
            self._show("")
        elif isinstance(event, NarrationDelta):
            self._show(event.after(self.text))
        elif isinstance(event, PlanRefused):
            self._show("")
        elif isinstance(event, CallStarted):
            self._work[event.call] = _Work()
        elif isinstance(event, CallEmitted) and isinstance(event.event, Log):
            self._log(event.call, event.event)
        elif isinstance(event, CallFinished):
            self._work.pop(event.call, None)
        elif isinstance(event, Narration | TurnCommitted):
            self.stop()

    def _log(self, call: str, log: Log) -> None:
        work = self._work.get(call)
        if work is None:
            return
        progress = (log.fields or {}).get("progress")
        if isinstance(progress, int | float) and not isinstance(progress, bool):
            work.progress = min(1.0, max(0.0, float(progress)))
        if log.level != "debug":
            work.message = " ".join(log.message.split())

    def _show(self, text: str) -> None:
        self.text = text
        if self._live is None:
            self._since = monotonic()
            self._live = Live(
                console=self.out, get_renderable=self._now, refresh_per_second=12, transient=True
            )
            self._live.start()

    def _now(self) -> RenderableType:
        parts: list[RenderableType] = [_Wrapped(prose(self.text))] if self.text else []
        if monotonic() - self._since >= _SOON:
            work = list(self._work.values())[-_AT_ONCE:]
            parts += [Padding(self._line(one), (0, 2)) for one in work]
            if not work and not self.text:
                parts.append(Padding(self._spinner, (0, 2)))
        return Group(*parts)

    def _line(self, work: _Work) -> RenderableType:
        sign: RenderableType = self._wheel
        if work.progress is not None:
            sign = ProgressBar(total=1.0, completed=work.progress, width=20)
        said = styled((work.message, "dim"))
        said.truncate(max(1, self.out.width - 30), overflow="ellipsis")
        line = Table.grid(padding=(0, 1))
        line.add_row(sign, said)
        return line

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()  # which draws once more, hence before the text is gone
            self._live = None
        self.text = ""
        self._work.clear()


@dataclass(slots=True)
class _Wrapped:
    """Text that wraps on a console that breaks no lines."""

    text: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.text, options.update(no_wrap=False, overflow="fold"))


@dataclass(slots=True)
class _Work:
    """A call that runs: the newest of its log, and how far it is."""

    message: str = ""
    progress: float | None = None


def silence(narrator: Narrator, result: TurnResult) -> str:
    """Return in one line that a model did not answer and why; "" if none failed. Narrators are not named by their ids.

    A turn that is only shown again has no plans and no problems: the chain's failures belong to another turn.
    """
    if not isinstance(narrator, ChainNarrator) or not (result.plans or result.problems):
        return ""
    failed = narrator.failures.items()
    return " · ".join(
        f"{_IN_WORDS.get(name, 'a narrator')} did not answer: {clipped(why)}" for name, why in failed
    )


def clipped(why: str) -> str:
    """Return a reason without the places in a plan, which are for a model to read."""
    why = printable(" ".join(why.split()))
    if why.startswith(_REJECTED):
        why = f"no usable plan: {_PLACES.sub('', why.removeprefix(_REJECTED))}"
    return why if len(why) <= _WHY else f"{why[:_WHY]}…"
