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
    STOPWORDS,
    VERBS,
    split_name,
    stem,
)
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_ARTICLE: Final = r"(?:(?P<article>the|an?|some|my)\s+)?"
_ADJECTIVES: Final = rf"(?:(?!(?:{'|'.join(sorted(PREPOSITIONS))}) )[\w-]+ ){{0,2}}?"
_SHORTEST: Final = 2  # words: "Pauses" alone says too little
# Where a description goes on to say when, why or what else.
_ENOUGH: Final = re.compile(r"(?<!\s)\s*(?:[.;:(,]| so that | and )")
_EITHER_WAY: Final = re.compile(r"\b(on) or off\b|\b(up) or down\b")


@dataclass(frozen=True, slots=True)
class Place:
    """A place for the name of a thing."""

    slot: Slot
    said: str  # what the tool's card says in its stead, "" for nothing in particular
    written: str = ""  # the same as it stands there, "the rose bed" for `rose_bed`
    article: str = "the"  # before what has no name of its own
    noun: str = ""  # what comes after a choice: "the monthly plan"
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
    """ "Turns a machine on or off." as "Turn {machine} on"; None where it does not name all that is needed."""
    parts: list[Part] = [_EITHER_WAY.sub(lambda match: match[1] or match[2], tool.card.description)]
    for slot in tool.required:
        if slot.kind == "flag" and _EITHER_WAY.search(tool.card.description):
            continue
        cut = None
        if slot.kind == "choice" or (slot.kind == "text" and not slot.quoted):
            for word in reversed(split_name(slot.name)):
                noun = rf"\b(?P<article>an?|the|another|some|one) {_ADJECTIVES}{word}(?: or (?:an? )?\w+)?\b"
                known = (
                    word not in STOPWORDS
                )  # the slot `to` of "ride the broom to a place" is not what is ridden
                cut = cut or (
                    _cut(parts, noun, slot, "", word if slot.kind == "choice" else "") if known else None
                )
        if cut is None:
            return None
        parts = cut
    return _imperative(_shortened(parts), tool)


def _shortened(parts: list[Part]) -> list[Part]:
    """Up to where all things are named and enough is said."""
    last = max((at for at, part in enumerate(parts) if isinstance(part, Place)), default=-1)
    rest = "".join(part for part in parts[last + 1 :] if isinstance(part, str))
    least = 0 if last >= 0 else len(" ".join(rest.split()[:_SHORTEST]))
    end = next((match.start() for match in _ENOUGH.finditer(rest) if match.start() >= least), len(rest))
    return [*parts[: last + 1], rest[:end]]


def _imperative(parts: list[Part], tool: ToolProfile) -> Sentence | None:
    """ "Turns" as "Turn"; None where the description does not begin with a verb."""
    first = parts[0] if parts else ""
    if not isinstance(first, str) or not first.split():
        return None
    word = first.split()[0]
    base = _verb(word, tool)
    if not base or (len(parts) == 1 and len(first.split()) < _SHORTEST):
        return None
    return Sentence((base.capitalize() + first[len(word) :], *parts[1:]))


def _verb(word: str, tool: ToolProfile) -> str:
    """The word as one would order it; "" where it is no verb, or one of a list."""
    low = word.casefold()
    if not low.isalpha():
        return ""
    for base in (low, low.removesuffix("s"), low.removesuffix("es")):
        if base in VERBS or base in NOUNISH:
            return base
    verbs = {stem(split_name(tool.card.name)[0]), *(stem(text.split()[0]) for text, _ in tool.examples)}
    return low if stem(low) in verbs and not low.endswith("s") else ""


def action(tool: ToolProfile) -> str:
    """The action of a tool, to be said after "to": "turn a machine or lamp in the workshop on or off"."""
    told = _imperative(_shortened([tool.card.description]), tool)
    text = str(told.parts[0]) if told else ""
    return text[:1].casefold() + text[1:]


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


def _cut(parts: list[Part], pattern: str, slot: Slot, said: str, noun: str = "") -> list[Part] | None:
    """With a place where the pattern is found first; None where it is not."""
    for at, part in enumerate(parts):
        match = re.search(pattern, part, re.IGNORECASE) if isinstance(part, str) else None
        if match and isinstance(part, str):
            article = match["article"] or ("" if said and not is_name(said) else "the")
            capital = "The" if article[:1].isupper() else "the"
            place = Place(slot, said, match[0], capital if article else "", noun, free=slot.quoted)
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
    if place.noun:
        return f"the {label} {place.noun}"
    bare = is_name(label) or not place.article or label.split()[0] in DETERMINERS
    return label if bare else f"{place.article} {label}"
