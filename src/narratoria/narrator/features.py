"""What a clause has in common with a tool, counted word by word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from narratoria.narrator.families import families, says_enough
from narratoria.narrator.filling import Filling
from narratoria.narrator.phrases import Reading
from narratoria.narrator.profiles import ToolProfile
from narratoria.narrator.words import STOPWORDS, split_name, stem, word_set

_AKIN: Final = 0.5  # a thing this near to a tool's sentences is what the tool is about
_LIGHTEST: Final = word_set("take get make do put set go give have let use run")


def surface(
    tool: ToolProfile,
    reading: Reading,
    filling: Filling,
    unexplained: float,
    misplaced: float,
    verbs: set[str],
) -> tuple[float, ...]:
    verb = stem(reading.verb) if reading.verb else ""
    said = {stem(t.low) for t in reading.tokens if not t.quoted and t.low not in STOPWORDS and len(t.low) > 1}
    named = _named(tool, verb, reading)
    required = tool.required
    firm = sum(filling.strength.get(slot.name, 0.0) for slot in required) / len(required) if required else 0.8
    optional = sum(filling.strength.get(slot.name, 0.0) for slot in tool.slots if not slot.required)
    return (
        named,
        min(len((said - {verb}) & tool.nouns), 2) / 2,
        firm,
        float(min(len(filling.missing), 2)),
        min(optional, 2.0) / 2,
        float(named == 1.0 and firm == 1.0 and bool(required) and unexplained < 0.05),
        unexplained,
        float(bool(verb) and verb in verbs and verb not in tool.words),
        misplaced,
    )


def _named(tool: ToolProfile, verb: str, reading: Reading) -> float:
    """How far the clause's verb is the tool's: "take" alone is not "take off"."""
    if not verb or verb not in tool.words | tool.verbs:
        return 0.0
    if verb not in tool.verbs:
        return 0.5
    if says_enough(reading.verb, reading.particle) and reading.verb not in _LIGHTEST:
        return 1.0
    if reading.verb == split_name(tool.card.name)[0] and reading.verb not in _LIGHTEST:
        return 1.0
    said = {particle for word, particle in tool.phrasal if word == verb}
    return 0.5 if not said or reading.particle in said else 0.0


def _is_its_deed(tool: ToolProfile, reading: Reading) -> bool:
    shared = families(reading.verb, reading.particle) & tool.families
    return stem(reading.verb) in tool.verbs or bool(shared)


def kinship(tool: ToolProfile, reading: Reading, filling: Filling) -> tuple[float, float]:
    if not reading.verb or stem(reading.verb) in tool.verbs:
        return 0.0, 0.0
    if any(reading.tokens[at].low == reading.verb for at in filling.used):
        return 0.0, 0.0  # "vacuum the floor": the verb is what a slot holds
    known = families(reading.verb, reading.particle)
    if not known or not tool.families:
        return 0.0, 0.0
    if known & tool.families:
        return 1.0, 0.0
    article = {token.low for token in reading.tokens[reading.body : reading.body + 1]} & {"a", "an", "some"}
    if article and reading.verb in ("take", "pay", "run", "set", "call"):
        return 0.0, 0.0  # "take a reading": the deed is in the noun
    if known & tool.hints or not says_enough(reading.verb, reading.particle):
        return 0.0, 0.0
    return 0.0, 1.0 if len(known) == 1 else 0.5  # a verb of several families has several meanings


def unexplained_words(
    tool: ToolProfile, reading: Reading, filling: Filling, known: Mapping[str, float]
) -> float:
    """Of the words beside the verb, the share that is neither in a slot nor like what the tool is about."""
    familiar = {
        index: known.get(phrase.text, 0.0)
        for phrase in reading.phrases
        for index in range(phrase.start, phrase.end)
    }
    total = stray = 0.0
    for index in range(reading.body, len(reading.tokens)):
        token = reading.tokens[index]
        if token.quoted or token.low in STOPWORDS or not token.low[0].isalnum() or token.low == reading.verb:
            continue
        total += 1
        if index not in filling.used and reading.stems[index] not in tool.words:
            stray += 1.0 - min(max(familiar.get(index, 0.0), 0.0), 1.0)
    return stray / total if total else 0.0


def misplaced_object(
    tool: ToolProfile, reading: Reading, filling: Filling, known: Mapping[str, float]
) -> float:
    """1 where the clause's verb has an object that no slot takes and that the tool does not speak of."""
    first = next((phrase for phrase in reading.phrases if not phrase.owner), None)
    if first is None or first.prep or first.pronoun or first.quoted or not reading.body:
        return 0.0
    noun = first.end - 1
    if noun in filling.used or reading.stems[noun] in tool.words:
        return 0.0
    counted = any(first.start <= quantity.start < first.end for quantity in reading.quantities)
    if counted and filling.used & set(range(first.start, first.end)) and _is_its_deed(tool, reading):
        return 0.0  # "serve nine people" says for how many
    numbers = {index for quantity in reading.quantities for index in range(quantity.start, quantity.end)}
    own = stem(reading.verb) in tool.verbs
    verb = {at for at, token in enumerate(reading.tokens) if own and token.low == reading.verb}
    if filling.used - numbers - verb - set(range(first.start, first.end)):
        return 0.0  # "say hello to the hermit" is about the hermit
    return float(known.get(first.text, 0.0) < _AKIN)
