"""Casting: the chain of narrators that a story asks for, of those that are available."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from narratoria.agent import chosen_model
from narratoria.errors import NarratorUnavailable, StoryInvalid
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.lazy_narrator import LazyNarrator
from narratoria.narrator.protocol import Narrator
from narratoria.narrator.roster import BY_RULES, LAST_RESORT, NARRATORS, RULES
from narratoria.narrator.rules.patterns import same_request
from narratoria.narrator.template import TemplateNarrator, account
from narratoria.play.last_resort import PlainNarrator, plain_list
from narratoria.play.offering import same_words
from narratoria.play.story import Story
from narratoria.play.turn_types import TurnSettings
from narratoria.run.plan_executor import GENERATION_TIMEOUT


@dataclass(frozen=True, slots=True)
class Cast:
    """A place in a chain: everything a narrator's module needs to make the narrator."""

    story: Story
    names: tuple[str, ...]  # the narrators of the chain, in order
    at: int = 0

    @property
    def in_front(self) -> tuple[str, ...]:
        """The narrators that are asked before this one, the nearest first."""
        return _up_to_template(self.names[: self.at][::-1])

    @property
    def behind(self) -> tuple[str, ...]:
        """The narrators that are asked after this one."""
        return _up_to_template(self.names[self.at + 1 :])

    @property
    def reads_rules(self) -> bool:
        return not set(BY_RULES).isdisjoint(self.names)

    @property
    def last_resort(self) -> Narrator:
        return last_resort(self.story)


def _up_to_template(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names before a template, which answers everything."""
    return names[: names.index(LAST_RESORT)] if LAST_RESORT in names else names


def make_narrator(
    story: Story, names: Sequence[str] | None = None, *, time_limit: float = GENERATION_TIMEOUT
) -> ChainNarrator:
    """Return the chain a story asks for, or the one named. An unavailable narrator is left out, unless it was named."""
    asked = list(names or story.narrators)
    if asked[-1:] == [LAST_RESORT]:
        asked.pop()  # the chain's last resort, which also lets an earlier one's refusal be the answer
    available = [name for name in asked if _is_available(story, name, required=names is not None)]
    line_up = tuple(_with_rules_again(available))
    chosen: list[Narrator] = []
    for at, name in enumerate(line_up):
        try:
            chosen.append(import_module(NARRATORS[name]).make(Cast(story, line_up, at)))
        except NarratorUnavailable:
            if names is not None:
                raise
    return ChainNarrator(chosen, last_resort=last_resort(story), time_limit=time_limit)


def last_resort(story: Story) -> Narrator:
    """Return the narrator for a turn whose attempts are used up: the template, in English; for a story in another
    language its own lines, or no words at all.
    """
    return TemplateNarrator() if story.is_english else PlainNarrator(story.refusal)


def turn_settings(story: Story, generation_timeout: float) -> TurnSettings:
    """Return the settings of every turn of a story: what the core must say itself, in the story's language."""
    language = story.rules.language if story.rules is not None else None
    takes_choice = same_request if story.is_english else same_words
    if language is not None:
        takes_choice = partial(same_request, language=language)
    return TurnSettings(
        premise=story.premise,
        going_on=story.go_on or ("wait" if story.is_english and story.rules is not None else ""),
        generation_timeout=generation_timeout,
        takes_choice=takes_choice,
        last_resort=last_resort(story),
        list_calls=account if story.is_english else plain_list,
    )


def _is_available(story: Story, name: str, *, required: bool) -> bool:
    if name not in NARRATORS:
        raise StoryInvalid(f"no narrator is called {name!r}; use some of: {', '.join(NARRATORS)}")
    why = what_is_missing(story, name)
    if why and required:
        raise NarratorUnavailable(f"the narrator {name!r}: {why}")
    return not why


def _with_rules_again(names: list[str]) -> list[str]:
    """Return the names with the rules once more behind the narrators the rules defer to: a partial answer of the
    rules, marked as such, is better than nothing.
    """
    if RULES not in names:
        return names
    first = names.index(RULES) + 1
    behind = _up_to_template(tuple(names[first:]))
    end = first + len(behind)
    return [*names[:end], RULES, *names[end:]] if set(behind) - {RULES} else names


def what_is_missing(story: Story, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the parts the narrator lacks to speak in this story, in a sentence, or "". Nothing is loaded to find
    out.
    """
    return str(import_module(NARRATORS[name]).missing(story, environment))


def what_it_lacks(
    story: Story, name: str, tools: Collection[str], environment: Mapping[str, str] = os.environ
) -> str:
    """Return the parts the narrator lacks to tell this story by itself, with these tools, in a sentence, or ""."""
    missing = what_is_missing(story, name, environment) if name in NARRATORS else ""
    if missing or story.rules is None or name in (*BY_RULES, "llm"):
        return missing
    if name == LAST_RESORT:
        return "it has no words for what happens in this story, and does nothing"
    free = set(tools) - story.reserved_tools
    return "" if free else "this story is told by its rules, which keep its tools to themselves"


def warm_up(narrator: Narrator) -> None:
    """Load in the background what a narrator, or those of a chain, will need; return at once."""
    for one in narrator.narrators if isinstance(narrator, ChainNarrator) else (narrator,):
        if isinstance(one, LazyNarrator):
            one.warm_up()


async def ready(narrator: Narrator, seconds: float) -> None:
    """Wait, at most `seconds`, for the loading that `warm_up` started: for callers without a waiting player."""
    chain = narrator.narrators if isinstance(narrator, ChainNarrator) else (narrator,)
    made = [one.hurry() for one in chain if isinstance(one, LazyNarrator)]
    if made:
        done, _ = await asyncio.wait([asyncio.wrap_future(one) for one in made], timeout=seconds)
        for one in done:
            one.exception()  # told when the narrator is asked


def granted_time(environment: Mapping[str, str] | None = None) -> float:
    """Return the seconds for one generation: five, or more if NARRATORIA_LLM_TIMEOUT or a person gives a model more.

    A chain keeps a part of the time for the narrators behind the model, hence the quarter on top.
    """
    # 000 §13.6: five seconds.
    try:
        found = chosen_model.environment() if environment is None else environment
        granted = float(found.get("NARRATORIA_LLM_TIMEOUT") or 0)
    except (ValueError, chosen_model.ChoiceInvalid):
        return GENERATION_TIMEOUT  # the LLM narrator itself says what is wrong with it
    return max(GENERATION_TIMEOUT, granted * 1.25)
