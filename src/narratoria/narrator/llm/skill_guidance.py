"""Guidance of skills for a model, step by step: what each is for, then the instructions it needs, then single pages.

A model reads on by naming a skill, or a page of one (`dice/references/odds.md`), in its answer. A skill that the player
names, or whose tool the last plan called, is told at once. A guide of a story is short, and always told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from narratoria.agent.adapters.answers import json_in
from narratoria.errors import ArgumentsInvalid
from narratoria.narrator.protocol import NarratorRequest, ToolCard
from narratoria.skills.skill import Skill, SkillInvalid

READINGS: Final = 2
"""Times a model may read on before it has to answer."""
MOST_READ: Final = 4
"""Skills and pages that are told at a time; the oldest goes first."""
MOST_LISTED: Final = 40
CONSULT: Final = "consult"
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Told:
    """The parts of a prompt that are about skills, unbounded; `closed` can be read on request."""

    guides: Sequence[tuple[str, str]] = ()
    opened: Sequence[tuple[str, str]] = ()
    closed: Sequence[tuple[str, str]] = ()


def told(request: NarratorRequest, cards: Sequence[ToolCard], read: Collection[str] = ()) -> Told:
    """Return what to tell of the skills of a request; `read` names what the model asked to read."""
    at_hand = {card.skill or card.name for card in cards}
    guides = [(one.name, one.body) for one in request.skills if one.is_guide and one.name in at_hand]
    opened: list[tuple[str, str]] = []
    closed: list[tuple[str, str]] = []
    for skill in [one for one in request.skills if not one.is_guide][:MOST_LISTED]:
        if skill.name not in read and not is_chosen(skill, request):
            closed.append((skill.name, " ".join(skill.description.split())))
            continue
        opened.append((skill.name, skill.body))
        for path in skill.references:
            page = f"{skill.name}/{path}"
            if page in read:
                opened.append((page, _page(skill, path)))
            else:
                closed.append((page, f"a page of {skill.name}"))
    return Told(guides, opened[-MOST_READ:], closed)


def is_chosen(skill: Skill, request: NarratorRequest) -> bool:
    """Tell if the player names the skill, or the last plan called one of its tools."""
    plan = request.parent_plan
    if plan is not None and any(call.tool_path.startswith(f"{skill.name}.") for call in plan.tools):
        return True
    return set(_WORDS.findall(skill.name)) <= set(_WORDS.findall(request.prompt.casefold()))


def asked_to_read(text: str, closed: Sequence[tuple[str, str]]) -> list[str]:
    """Return the skills and pages that a reply asks for."""
    known = {name for name, _ in closed}
    if not known or CONSULT not in text:
        return []
    try:
        named = json_in(text).get(CONSULT)
    except ArgumentsInvalid:
        return []
    return [one for one in named if isinstance(one, str) and one in known] if isinstance(named, list) else []


def _page(skill: Skill, path: str) -> str:
    try:
        return skill.read_reference(path)
    except SkillInvalid as error:
        return f"It cannot be read: {error}"
