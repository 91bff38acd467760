"""The words that a clause has in common with a tool, counted as features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.mood import is_small_talk
from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.tokens import Token
from narratoria.narrator.english.verbs import families, says_enough
from narratoria.narrator.local.filled_slots import WORDS, Filling
from narratoria.narrator.local.tool_profiles import ToolProfile

_AKIN: Final = 0.5  # a thing this near to a tool's sentences is what the tool is about
LIGHTEST: Final = words("verbs.lightest")
_NAMED: Final = 0.9  # a slot filled this firmly holds what the story knows
_SENTENCE: Final = 3  # words that may mean a tool by their meaning alone,
_NEAR: Final = 0.75  # where they are this near to what it is for, by both models together,
_NEARER: Final = 0.86  # and fewer where they are this near
_SHORT: Final = 3  # letters: one of them mended, it may be any word


def surface(
    tool: ToolProfile,
    reading: Reading,
    filling: Filling,
    unexplained: float,
    misplaced: float,
    verbs: set[str],
) -> tuple[float, ...]:
    """The features of words, in the order of `tool_matching.FEATURES`."""
    verb = en.stem(reading.verb) if reading.verb else ""
    said = {
        en.stem(t.low)
        for t in reading.tokens
        if not t.quoted and t.low not in en.STOPWORDS and len(t.low) > 1
    }
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
    """The share of the tool's verb in the clause's: "take" alone is not "take off"."""
    if not verb or verb not in tool.words | tool.verbs:
        return 0.0
    if verb not in tool.verbs:
        return 0.5
    if says_enough(reading.verb, reading.particle) and reading.verb not in LIGHTEST:
        return 1.0
    if reading.verb == en.split_name(tool.card.name)[0] and reading.verb not in LIGHTEST:
        return 1.0
    said = {particle for word, particle in tool.phrasal if word == verb}
    return 0.5 if not said or reading.particle in said else 0.0


def is_its_action(tool: ToolProfile, reading: Reading) -> bool:
    """Tell if the clause's verb is one of the tool's, or of a family with one."""
    shared = families(reading.verb, reading.particle) & tool.families
    return en.stem(reading.verb) in tool.verbs or bool(shared)


def kinship(tool: ToolProfile, reading: Reading, filling: Filling) -> tuple[float, float]:
    """Akin and foreign: the verb shares a family with the tool, or is of others only."""
    if not reading.verb or en.stem(reading.verb) in tool.verbs:
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
        return 0.0, 0.0  # "take a reading": the action is in the noun
    if known & tool.hints or not says_enough(reading.verb, reading.particle):
        return 0.0, 0.0
    return 0.0, 1.0 if len(known) == 1 else 0.5  # a verb of several families has several meanings


def unexplained_words(
    tool: ToolProfile, reading: Reading, filling: Filling, known: Mapping[str, float]
) -> float:
    """The share of the words beside the verb that are neither in a slot nor like what the tool is about."""
    familiar = {
        index: known.get(phrase.text, 0.0)
        for phrase in reading.phrases
        for index in range(phrase.start, phrase.end)
    }
    total = stray = 0.0
    for index in range(reading.body, len(reading.tokens)):
        token = reading.tokens[index]
        if (
            token.quoted
            or token.low in en.STOPWORDS
            or not token.low[0].isalnum()
            or token.low == reading.verb
        ):
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
    if counted and filling.used & set(range(first.start, first.end)) and is_its_action(tool, reading):
        return 0.0  # "serve nine people" says for how many
    numbers = {index for quantity in reading.quantities for index in range(quantity.start, quantity.end)}
    own = en.stem(reading.verb) in tool.verbs
    verb = {at for at, token in enumerate(reading.tokens) if own and token.low == reading.verb}
    if filling.used - numbers - verb - set(range(first.start, first.end)):
        return 0.0  # "say hello to the hermit" is about the hermit
    return float(known.get(first.text, 0.0) < _AKIN)


def grounds(tool: ToolProfile, reading: Reading, filling: Filling, near: float) -> bool:
    """Tell if a clause gives a reason for this tool: "ok", "xyzzy" and "1" are near to some tool in any catalogue."""
    said = [t for t in reading.tokens if t.quoted or (_is_word(t) and t.low not in en.FILLERS)]
    own = {en.stem(token.low) for token in said if token.quoted or token.low not in en.STOPWORDS}
    holds = _holds_something_known(tool, reading, filling)
    if _is_small_talk(reading):
        named = own & en.content_stems(tool.card.name) - en.PARTICLES
        return bool(named) or (len(reading.tokens) == 1 and holds)
    akin = any(families(token.low, reading.particle) & tool.families for token in said)
    its_own = bool(reading.verb) and is_its_action(tool, reading)
    if any((holds, akin, its_own, own & tool.words, own and filling.refers)):
        return True
    return near > (_NEAR if own and len(said) >= _SENTENCE else _NEARER) and bool(said)


def _is_small_talk(reading: Reading) -> bool:
    plain = [token for token in reading.tokens if token.low[0].isalnum()]
    return is_small_talk([t.low for t in plain]) or is_small_talk([t.text.casefold() for t in plain])


def _is_word(token: Token) -> bool:
    """Tell if a token says something by itself: no number, no letter, no three letters that were mended."""
    letters = sum(letter.isalpha() for letter in token.low)
    mended = len(token.low) <= _SHORT and token.text.casefold() != token.low
    return letters > 1 and token.low not in en.NUMBERS and not mended


def _holds_something_known(tool: ToolProfile, reading: Reading, filling: Filling) -> bool:
    """Tell if a slot holds a choice or a thing that the clause names; a number is no reason."""
    firm = {"choice": WORDS, "flag": WORDS, "text": _NAMED, "texts": _NAMED}
    for slot in tool.slots:
        named = [reading.tokens[at] for at in filling.spans.get(slot.name, ())]
        says = any(t.quoted or _is_word(t) or (len(t.low) == 1 and t.low.isalpha()) for t in named)
        if says and slot.kind in firm and filling.strength[slot.name] >= firm[slot.kind]:
            return True
    return False
