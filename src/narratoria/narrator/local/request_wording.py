"""Sentences that ask for a tool, with places for things, made of what the tool's card says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from narratoria.narrator.english.words import (
    DETERMINERS,
    NOUNISH,
    PARTICLES,
    PREPOSITIONS,
    VERBS,
    split_name,
    stem,
)
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_ARTICLE: Final = r"(?:(?P<article>the|an?|some|my)\s+)?"
# Where a description goes on to say when, why or what else.
_ENOUGH: Final = re.compile(r"\s*(?:[.;:(,]| so that | and )")


@dataclass(frozen=True, slots=True)
class Place:
    """A place for the name of a thing."""

    slot: Slot
    said: str  # what the tool's card says in its stead, "" for nothing in particular
    written: str = ""  # the same as it stands there, "the rose bed" for `rose_bed`
    article: str = "the"  # before what has no name of its own
    free: bool = False  # anything may stand here, also what the card says


Part: TypeAlias = str | Place


@dataclass(frozen=True, slots=True)
class Sentence:
    """A request with places for things."""

    parts: tuple[Part, ...]
    known: frozenset[str] = frozenset()  # values it goes without saying; they must be here

    @property
    def places(self) -> list[Place]:
        return [part for part in self.parts if isinstance(part, Place)]


def sentences(tool: ToolProfile) -> list[Sentence]:
    """The ways to ask for a tool, best first: as its examples do, as its description says, by its name."""
    shown = [_of_example(tool, text, values) for text, values in tool.examples]
    shown.sort(key=lambda way: sum(not place.slot.required for place in way.places))
    ways = [*shown, _of_description(tool), _of_name(tool)]
    return [way for way in ways if way is not None]


def is_name(text: str) -> bool:
    """Tells if a text is spelled like a name, which is said without "the"."""
    return text[:1].isupper() or any(letter.isdigit() for letter in text)


def _of_example(tool: ToolProfile, text: str, values: Any) -> Sentence:
    parts: list[Part] = [text]
    known: set[str] = set()
    for slot in tool.slots:
        value = values.get(slot.name)
        if slot.kind != "text" or not isinstance(value, str) or not value:
            continue
        cut = _cut(parts, rf"""(?<![\w"“']){_ARTICLE}{_as_said(value)}(?!\w)""", slot, value)
        if cut is None:
            known |= set() if slot.quoted else {value}
        else:
            parts = cut
    return Sentence(tuple(parts), frozenset(known))


def _of_description(tool: ToolProfile) -> Sentence | None:
    """ "Light the lantern." as it stands, up to where it says when or why; None where more must be named."""
    text = _ENOUGH.split(tool.card.description)[0]
    orders = text.casefold().split()[:1]
    plain = len(text.split()) > 1 and orders[0] in VERBS | NOUNISH
    return Sentence((text,)) if plain and not tool.required else None


def _of_name(tool: ToolProfile) -> Sentence | None:
    """`move_drape` as "Move {drape}", `read_chart` as "Read the chart of {patient}"."""
    words = split_name(tool.card.name)
    needed = [slot for slot in tool.required if slot.kind != "flag"]
    flags = [slot for slot in tool.required if slot.kind == "flag"]
    tail = " on" if flags and all("on" in slot.yes for slot in flags) else ""
    if not _names_an_action(tool) or len(needed) > 1 or (flags and not tail):
        return None
    if not needed:
        return Sentence((" ".join(words).capitalize() + tail,)) if len(words) > 1 else None
    slot = needed[0]
    while len(words) > 1 and stem(words[-1]) in slot.words:
        words = words[:-1]
    asked = _before_the_place(words, slot)
    if asked is None:
        return None
    article = "" if slot.kind == "choice" and asked == words else "the"
    return Sentence((" ".join(asked).capitalize() + " ", Place(slot, "", article=article), tail))


def _names_an_action(tool: ToolProfile) -> bool:
    """Tells if a tool's name begins with a verb; `station_status` does not."""
    words = split_name(tool.card.name)
    told = [stem(word) for word in split_name(tool.card.description)[:1]]
    if words[0] in VERBS | NOUNISH or stem(words[0]) in told:
        return True
    return len(words) > 1 and not any(stem(words[0]) in slot.words for slot in tool.slots)


def _before_the_place(words: list[str], slot: Slot) -> list[str] | None:
    """The words in front of a slot's place; None where nobody would say it so."""
    about = [word for word in words[1:] if word not in PARTICLES | PREPOSITIONS]
    if slot.name in PREPOSITIONS and words[-1] != slot.name:
        return [*words, slot.name]
    if slot.kind == "choice" and not about:
        return words
    if slot.kind != "text" or slot.quoted:
        return None
    return [words[0], "the", *about, "of"] if about and words[1:] == about else words


def _cut(parts: list[Part], pattern: str, slot: Slot, said: str) -> list[Part] | None:
    """With a place where the pattern is found first; None where it is not."""
    for at, part in enumerate(parts):
        match = re.search(pattern, part, re.IGNORECASE) if isinstance(part, str) else None
        if match and isinstance(part, str):
            article = match["article"] or ("" if said and not is_name(said) else "the")
            capital = "The" if article[:1].isupper() else "the"
            place = Place(slot, said, match[0], capital if article else "", free=slot.quoted)
            cut: list[Part] = [part[: match.start()], place, part[match.end() :]]
            return [*parts[:at], *(one for one in cut if one != ""), *parts[at + 1 :]]
    return None


def _as_said(value: str) -> str:
    """A pattern for a value as an example may write it: `rose_bed` as "rose bed"."""
    return r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_]+", value) if word)


def spoken(place: Place, value: str, *, named: bool = False) -> str:
    """A value as it is said in its place: `rose_bed` as "the rose bed", `ada` as "Ada" where that is a name."""
    if value == place.said:
        return place.written
    label = " ".join(split_name(value)) if value.islower() else value.replace("_", " ")
    if named and label.islower():
        label = label.title()
    bare = is_name(label) or not place.article or label.split()[0] in DETERMINERS
    return label if bare else f"{place.article} {label}"
