"""The profile of a tool, from its card: its words, its slots, and the way its examples fill them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

import jsonschema_rs

from narratoria.narrator.english import words as en
from narratoria.narrator.english.clauses import split_clauses
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.mood import Mood, mood
from narratoria.narrator.english.named_things import EntityFinder
from narratoria.narrator.english.phrases import Reading, read
from narratoria.narrator.english.tokens import tokenize
from narratoria.narrator.english.verbs import families, families_of
from narratoria.narrator.protocol import ToolCard

Kind: TypeAlias = Literal["choice", "flag", "number", "text", "texts", "other"]
Shown: TypeAlias = Sequence[tuple[Reading, Mapping[str, Any]]]  # examples, each with its input

_NOBODY: Final = EntityFinder(())
_FREE_TEXT: Final = en.stems_of("tools.free_text")
_SAID: Final = en.stems_of("tools.said")
_SOMEBODY: Final = words("tools.who")
_GETS: Final = words("tools.gets")
_WHO: Final = _SOMEBODY | {"name"}
# Verbs of tools that take down how things are: "the bell is broken". A tool that notes any words is none.
_ANSWERED: Final = frozenset({Mood.QUESTION, Mood.MUSING, Mood.STATEMENT})
_BOTH: Final = frozenset({Mood.QUESTION, Mood.MUSING})
_KINDS: Final[Mapping[str, Kind]] = {
    "boolean": "flag",
    "integer": "number",
    "number": "number",
    "string": "text",
}
WAYS: Final = {"on": "off", "off": "on", "up": "down", "down": "up"}  # with the opposite of each
_TRUE_FALSE: Final = re.compile(
    r"\b(true|false)\b[\s:=-]*(?:to|for|if|when|means)?\s*([^,;.]+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One property of a tool's parameters."""

    name: str
    kind: Kind
    schema: Mapping[str, Any]
    required: bool
    words: frozenset[str]  # stems of its name
    described: frozenset[str]  # stems of its description
    preps: frozenset[str]  # what stands before its value in the examples; "" for a plain object
    hinted: frozenset[str]  # prepositions in its description
    quoted: bool  # examples put it in quotation marks, or it is named as words to be said
    clausal: bool  # an example fills it with a whole clause
    yes: frozenset[str] = frozenset()  # of a flag: stems that mean true
    no: frozenset[str] = frozenset()
    person: bool = False  # it is asked for by "who"
    called: bool = False  # it is asked for by its name: "name of the photo"

    @property
    def text(self) -> str:
        return " ".join([*en.split_name(self.name), str(self.schema.get("description", ""))]).strip()

    @property
    def choices(self) -> list[Any]:
        values = self.schema.get("enum")
        return list(values) if isinstance(values, list) else [self.schema["const"]]


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """Everything that is known of a tool before any prompt."""

    card: ToolCard
    slots: tuple[Slot, ...]
    verbs: frozenset[str]  # stems of the verbs in its name and examples
    phrasal: frozenset[tuple[str, str]]  # with the particle each is said with, if any: ("check", "out")
    words: frozenset[str]  # stems of all its words: name, description, slots
    nouns: frozenset[str]  # stems of the words of its name and description that are not verbs
    sentences: tuple[str, ...]  # what is embedded: description, name, examples
    validator: jsonschema_rs.Validator | None  # None where the parameters are no JSON Schema
    families: frozenset[int] = frozenset()  # of its actions
    hints: frozenset[int] = frozenset()  # of every word of its name and description
    actions: frozenset[str] = frozenset()  # every word that names what it does, "on" and "off" among them
    answers: frozenset[Mood] = frozenset()  # moods of a question that it may be asked in
    examples: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    fixed: frozenset[str] = frozenset()  # stems of what it always has to do with: "… into the cauldron"

    @property
    def purpose(self) -> str:
        """Its purpose, in the shape the tuned model knows: "pick up: Take an object that lies here."."""
        return f"{' '.join(en.split_name(self.card.name))}: {self.card.description}"

    @property
    def usable(self) -> bool:
        """False where a required slot is of a kind no prompt can fill."""
        fillable = all(slot.kind != "other" or not slot.required for slot in self.slots)
        return fillable and self.validator is not None

    def accepts(self, values: Mapping[str, Any]) -> bool:
        return self.validator is not None and self.validator.is_valid(dict(values))

    @property
    def required(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.required]


def profile(card: ToolCard) -> ToolProfile:
    """The profile of a tool, from its card."""
    examples = [(str(e.get("description", "")), _input(e)) for e in card.examples if e.get("description")]
    texts = [text for text, _ in examples]
    readings = [(_read(text), values) for text, values in examples]
    slots = tuple(_slots(card.parameters, readings))
    name = " ".join(en.split_name(card.name))
    described = [read(clause, _NOBODY) for clause in split_clauses(tokenize(card.description))]
    spoken = [reading for reading in (*described, *(reading for reading, _ in readings)) if reading.verb]
    verbs = {en.stem(reading.verb) for reading in spoken} | {en.stem(en.split_name(card.name)[0])}
    nouns = (en.content_stems(card.name) | en.content_stems(card.description)) - verbs
    said = set(en.split_name(" ".join((name, card.description, *texts))))
    return ToolProfile(
        card,
        slots,
        frozenset(verbs),
        frozenset((en.stem(reading.verb), reading.particle) for reading in spoken),
        frozenset(nouns | verbs).union(*(slot.words | slot.described for slot in slots)),
        frozenset(nouns),
        (card.description, name, *texts),
        _validator(card.parameters),
        _families(card, slots, spoken),
        families_of(en.split_name(f"{name} {card.description}")),
        frozenset(verbs | said & {"on", "off", "out"}).union(*map(_set_by, slots)),
        _answers(card, [reading for reading in described if reading.verb], texts),
        tuple(examples),
        frozenset().union(*map(_fixed, described)),
    )


def _fixed(described: Reading) -> set[str]:
    """ "Put something into the pot.": what stands there is said once for all."""
    definite = (p for p in described.phrases if p.start and described.tokens[p.start - 1].low == "the")
    return {described.stems[phrase.end - 1] for phrase in definite if phrase.prep}


def _set_by(slot: Slot) -> set[str]:
    """The words that set a flag or name a choice."""
    values = slot.choices if slot.kind == "choice" else []
    return {*slot.yes, *slot.no, *(en.stem(word) for value in values for word in en.split_name(str(value)))}


def _families(card: ToolCard, slots: Sequence[Slot], spoken: Sequence[Reading]) -> frozenset[int]:
    own = [families(reading.verb, reading.particle) for reading in spoken]
    words = [en.split_name(card.name)[0]]
    for slot in slots:
        told = en.split_name(str(slot.schema.get("description", "")))
        words += [word for before, word in pairwise(told) if before == "to"]  # "whom to call"
        words += [*slot.yes, *slot.no]
    return families_of(words).union(*own)


def _answers(card: ToolCard, described: Sequence[Reading], examples: Sequence[str]) -> frozenset[Mood]:
    """Questions may be put to a tool that tells something, or that has one among its examples."""
    asked = {mood([t.low for t in tokenize(text)], asks=text.rstrip().endswith("?")) for text in examples}
    heads = {en.stem(reading.verb) for reading in described[:1]} | {en.stem(en.split_name(card.name)[0])}
    if heads & en.stems_of("tools.tells"):
        asked.add(Mood.QUESTION)
    first = (clause for text in examples for clause in split_clauses(tokenize(text))[:1])
    if heads & en.stems_of("tools.takes_down") or any(clause.mood is Mood.STATEMENT for clause in first):
        asked.add(Mood.STATEMENT)
    return frozenset(asked & _ANSWERED) | (_BOTH if heads & en.stems_of("tools.advises") else frozenset())


def _validator(parameters: Mapping[str, Any]) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(dict(parameters))
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def _input(example: Mapping[str, Any]) -> Mapping[str, Any]:
    values = example.get("input")
    return values if isinstance(values, Mapping) else {}


def _read(text: str) -> Reading:
    clauses = split_clauses(tokenize(text))
    return read(clauses[0], _NOBODY) if clauses else Reading((), "", "", [], [])


def _slots(parameters: Mapping[str, Any], examples: Shown) -> list[Slot]:
    properties = parameters.get("properties")
    required = parameters.get("required")
    needed = set(required) if isinstance(required, list) else set()
    if not isinstance(properties, Mapping):
        return []
    return [
        _slot(str(name), schema if isinstance(schema, Mapping) else {}, name in needed, examples)
        for name, schema in properties.items()
    ]


def _slot(name: str, schema: Mapping[str, Any], required: bool, examples: Shown) -> Slot:
    description = str(schema.get("description", ""))
    preps: set[str] = set()
    quoted = clausal = False
    for reading, values in examples:
        value = values.get(name)
        for phrase in reading.phrases:
            if isinstance(value, str) and _same_words(phrase.text, value):
                preps.add(phrase.prep)
                quoted |= phrase.quoted
                clausal |= phrase.clausal
    yes, no = _polarity(name, description, examples)
    asked = {*en.split_name(description)[:2], *en.split_name(name)}
    person = bool(_WHO & asked)
    words = frozenset(en.stem(word) for word in en.split_name(name) if word not in ("the", "of"))
    hinted = (en.PREPOSITIONS - {"to", "of"}) & {*en.split_name(description), *en.split_name(name)}
    return Slot(
        name,
        _kind(schema),
        schema,
        required,
        words,
        frozenset(en.content_stems(description)),
        frozenset(preps),
        hinted | _receiver(description),
        quoted or bool(words & _FREE_TEXT) or (not person and bool(en.content_stems(description) & _SAID)),
        clausal,
        yes,
        no,
        person,
        person and not _SOMEBODY & asked,
    )


def _receiver(description: str) -> frozenset[str]:
    """ "to whom", "whom to talk to" and "who gets it" are answered by "to Ada"."""
    words = en.split_name(description)
    to_whom = any(pair in (("to", "whom"), ("to", "who")) for pair in pairwise(words))
    asked = bool(_SOMEBODY & set(words[:1]))
    gets = words[-1:] == ["to"] or bool(_GETS & set(words[1:2]))
    return frozenset({"to"}) if to_whom or (asked and gets) else frozenset()


def _kind(schema: Mapping[str, Any]) -> Kind:
    if "const" in schema or (isinstance(schema.get("enum"), list) and schema["enum"]):
        return "choice"
    types = schema.get("type") or "string"
    names = types if isinstance(types, list) else [types]
    for name, kind in _KINDS.items():
        if name in names:
            return kind
    items = schema.get("items")
    of_texts = not isinstance(items, Mapping) or items.get("type", "string") == "string"
    return "texts" if "array" in names and of_texts else "other"


def _polarity(name: str, description: str, examples: Shown) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a prompt that mean true and those that mean false, from the description and the examples."""
    sides: dict[bool, set[str]] = {True: _said_of(name), False: set()}
    for side, text in _TRUE_FALSE.findall(description):
        sides[side.casefold() == "true"] |= _said_of(text)
    for reading, values in examples:
        value = values.get(name)
        if isinstance(value, bool) and reading.verb:
            sides[value].add(en.stem(reading.verb))
    for side in (True, False):
        sides[not side] |= {WAYS[word] for word in sides[side] & WAYS.keys()}
    # "wash the bus" is shown without the flag as well: the verb says nothing of it.
    shared = sides[True] & sides[False] | {
        en.stem(one.verb) for one, values in examples if name not in values
    }
    return frozenset(sides[True] - shared), frozenset(sides[False] - shared)


def _said_of(text: str) -> set[str]:
    return en.content_stems(text) | (set(en.split_name(text)) & WAYS.keys())


def _same_words(first: str, second: str) -> bool:
    one, other = ([w for w in en.split_name(text) if w not in en.STOPWORDS] for text in (first, second))
    return one == other
