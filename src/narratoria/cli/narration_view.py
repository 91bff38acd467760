"""The narration in a terminal while it is being written, and the models that did not answer."""

from __future__ import annotations

import re
from time import monotonic
from typing import Final

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.spinner import Spinner

from narratoria.cli.output import printable, styled
from narratoria.events import CallStarted, Narration, NarrationDelta, PlanRefused, TurnCommitted, TurnStarted
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Narrator
from narratoria.play.turn import TurnResult
from narratoria.session import Record

WIDTH: Final = 88
THINKING: Final = "The narrator is thinking…"
_SOON: Final = 0.15  # seconds: a shorter wait is none
_REJECTED: Final = "plan rejected: "
_PLACES: Final = re.compile(r"(?<!\S)\$[.\w\[\]]*: ")
_WHY: Final = 200  # characters of a narrator's reason
_IN_WORDS: Final = {"llm": "the language model", "local": "the model on this machine"}


def prose(text: str) -> RenderableType:
    return Padding(Constrain(Markdown(printable(text)), WIDTH - 4), (0, 2))


class LiveNarration:
    """Shows the pieces of a narration as they come, below everything else; the caller prints the final text.

    Only a terminal can take a word back, so only there anything is shown before it is final. Until the first word,
    but not before the time in which most turns end, it says that the narrator is thinking.
    """

    def __init__(self, out: Console) -> None:
        self.out = out
        self.text = ""
        self._live: Live | None = None
        self._since = 0.0
        self._spinner = Spinner("dots", styled((THINKING, "dim")), style="dim")

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
        elif isinstance(event, Narration | TurnCommitted) or (
            isinstance(event, CallStarted) and not self.text
        ):
            self.stop()  # a tool at work has a sign of its own

    def _show(self, text: str) -> None:
        self.text = text
        if self._live is None:
            self._since = monotonic()
            self._live = Live(
                console=self.out, get_renderable=self._now, refresh_per_second=12, transient=True
            )
            self._live.start()

    def _now(self) -> RenderableType:
        if self.text:
            return prose(self.text)
        return Padding(self._spinner, (0, 2)) if monotonic() - self._since >= _SOON else ""

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()  # which draws once more, hence before the text is gone
            self._live = None
        self.text = ""


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
