"""The last resort: a narrator that never fails and needs nothing.

After five failed generations the player gets a line of this narrator, and can go on.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from narratoria.narrator.english.lexicon import entry
from narratoria.narrator.protocol import Narrator, NarratorRequest
from narratoria.run.plan import PlanDocument
from narratoria.run.records import failure_summary

if TYPE_CHECKING:
    from narratoria.play.casting import Cast
    from narratoria.play.story import Story

_LOOKED_AT: Final = 2_000
_QUOTED: Final = 60
_TOLD: Final = 200

_UNSURE: Final[Sequence[str]] = entry("template.unsure")
_SILENT: Final[Sequence[str]] = entry("template.silent")
_THWARTED: Final[Sequence[str]] = entry("template.thwarted")
_HALF_DONE: Final[Sequence[str]] = entry("template.half_done")
_QUESTION: Final[Sequence[str]] = entry("template.question")
_OFFER: Final[Sequence[str]] = entry("template.offer")


class TemplateNarrator:
    """Answers any prompt with a plan that has no calls and a narrative that leaves the way open."""

    name = "template"

    def __init__(self, *, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._new_id = new_id

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        return request.answer(narrate(request), request_id=self._new_id())


def missing(story: Story, environment: Mapping[str, str]) -> str:
    return ""


def make(cast: Cast) -> Narrator:
    return cast.last_resort


def narrate(request: NarratorRequest) -> str:
    """A line for this prompt, after what was tried; another one than the turn before."""
    prompt = request.prompt[:_LOOKED_AT]
    words = _speakable(prompt)
    lines = _lines(request, prompt, words)
    said = {turn.narrative for turn in request.history[-2:]}
    # The checksum spreads prompts; a counter alone would repeat one order in every session.
    start = zlib.crc32(prompt.encode("utf-8", "replace")) + len(request.history)
    options = [lines[(start + step) % len(lines)].format(words=words) for step in range(len(lines))]
    chosen = next((line for line in options if not any(line in text for text in said)), options[0])
    return " ".join(part for part in (chosen, _reason(request), _place(request.state)) if part)


def account(names: Sequence[str]) -> str:
    """A plain line of the tools that did their work, where nobody had a word for it."""
    counts = Counter(re.sub(r"[\W_]+", " ", name).strip() for name in names)
    times = {1: "", 2: ", twice"}
    done = [f"{name}{times.get(count, f', {count} times')}" for name, count in counts.items()]
    return f"Done: {'; '.join(done)}." if done else ""


def _lines(request: NarratorRequest, prompt: str, words: str) -> Sequence[str]:
    trace = request.last_trace
    if trace is not None and not trace.success:
        return _HALF_DONE if any(result.ok for result in trace.tool_results) else _THWARTED
    if not words:
        return _SILENT
    if prompt.rstrip().endswith("?"):
        return _QUESTION
    return (*_UNSURE, *_OFFER) if len(words) <= _QUOTED else _UNSURE


def _reason(request: NarratorRequest) -> str:
    """The summary of a failed call, as a sentence."""
    said = failure_summary(request.last_trace)[:_TOLD].rstrip(".")
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _speakable(prompt: str) -> str:
    """The prompt as something that can be quoted in a sentence, or nothing when it is not speech."""
    kept = "".join(char if unicodedata.category(char)[0] in "LMNPSZ" else " " for char in prompt)
    text = " ".join(kept.split()).strip("\"'“”.,;:!? ")
    letters = sum(char.isalpha() for char in text)
    if not letters or letters * 2 < len(text) or "�" in text:
        return ""
    return text


def _place(state: Mapping[str, Any]) -> str:
    """A sentence with the player's place, where the state has a title for it."""
    place = state.get("place")
    if isinstance(place, Mapping):
        place = place.get("title")
        if isinstance(place, str) and 0 < len(place) <= _QUOTED:
            return f"You are still {place}."
    return ""
