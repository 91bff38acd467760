"""The claims of a narration about the world, read sentence by sentence with patterns, in English.

Read as claims: that the player has a thing ("you carry the lantern", "you take the key"), that a thing is so ("the door
stands wide open", "the lamp has gone out", "the lantern glows", "torch lit."), actions of the player that make it so
("you open the door", "you push the door open"), and where the player is ("you stand in the tower", "you enter the
cellar"). Speech, questions, wishes, abilities and denials are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from narratoria.narrator.english.lexicon import entry, pattern, words
from narratoria.narrator.english.words import split_name

MAX_CLAIMS: Final = 24
_MAX_TEXT: Final = 8_000

_MADE: Final[Mapping[str, str]] = entry("claims.made")
_BY_ITSELF: Final[Mapping[str, str]] = entry("claims.by_itself")
_SPEECH: Final = pattern("claims.speech")
_SENTENCE: Final = pattern("claims.sentence")
_HEDGE: Final = pattern("claims.hedge")
_DENIAL: Final = pattern("claims.denial")
_NOT_DONE: Final = pattern("claims.not_done")

# Having: "you take the stairs", "you have a visitor" need not speak of possessions; what is firm does.
_HAS: Final = pattern("claims.has")
_IN_HAND: Final = pattern("claims.in_hand")
_HELD_TO: Final = pattern("claims.held_to")
_LET_GO: Final = pattern("claims.let_go")
_FIRM: Final = words("claims.firm")
_ABSTRACT: Final = words("claims.abstract")
_GETS: Final = words("claims.gets")

# Being.
_IS: Final = pattern("claims.is")
_TERSE: Final = pattern("claims.terse")
_DOES: Final = pattern("claims.does")

# Being somewhere.
_AT: Final = pattern("claims.at")
_MOVES: Final = pattern("claims.moves")
_WHITHER: Final = pattern("claims.whither")
_NOT_HERE: Final = pattern("claims.not_here")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of one sentence: the player has `thing`, or it is `trait`, or it is the player's place; or not."""

    text: str
    kind: Literal["has", "is", "at"]
    thing: tuple[str, ...]
    expected: bool = True
    trait: str = ""
    firm: bool = False  # that the player has it is wrong, too, where the state knows of no such thing
    part: bool = False  # a part or a measure of it: a rope elsewhere denies no length of rope


def claims(narration: str) -> list[Claim]:
    """The claims a narration makes, in order; speech and whatever is not asserted left out."""
    found: list[Claim] = []
    at: Claim | None = None  # only where it ends: a narration may pass through many places
    text = _SPEECH.sub(" — ", narration[:_MAX_TEXT])
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(match[0].split())  # a run of a thousand spaces would be tried from each of them
        if sentence.endswith("?") or _HEDGE.search(sentence):
            continue
        found.extend(_possessions(sentence, text[match.start() :]))
        found.extend(_traits(sentence))
        found.extend(_made(sentence))
        at = _whereabouts(sentence, at)
        if len(found) >= MAX_CLAIMS:
            break
    return [*found[: MAX_CLAIMS - 1], at] if at else found[:MAX_CLAIMS]


def _possessions(sentence: str, rest: str) -> Iterator[Claim]:
    """Claims that the player has a thing; `rest` is the narration from this sentence on."""
    for match in _HAS.finditer(sentence):
        verb, words = match["verb"].casefold().split()[0], split_name(match["thing"])
        if not words or (verb in _GETS and _LET_GO.search(rest, rest.find(match[0]) + len(match[0]))):
            continue
        part, expected = bool(match["part"]), not (match["not"] or match["no"])
        firm = verb in _FIRM and words[-1] not in _ABSTRACT and not part
        firm = firm and not _HELD_TO.match(sentence, match.start("verb"))
        yield Claim(match[0], "has", tuple(words), expected, firm=firm, part=part)
    for match in _IN_HAND.finditer(sentence):
        yield Claim(match[0], "has", tuple(split_name(match["thing"])))


def _traits(sentence: str) -> Iterator[Claim]:
    start = 0
    while match := _IS.search(sentence, start):
        start = match.end("before") + 1
        if not _DENIAL.search(match["before"]):
            trait = (match["trait"] or _BY_ITSELF[(match["turns"] or "").casefold()]).casefold()
            expected = not (match["not"] or match["isnt"])
            yield Claim(match[0], "is", tuple(split_name(match["before"])), expected, trait)
    if (terse := _TERSE.match(sentence)) and not _DENIAL.search(terse["before"]):
        thing = tuple(split_name(terse["before"]))
        yield Claim(terse[0].rstrip(" .!…;:"), "is", thing, trait=terse["trait"].casefold())


def _made(sentence: str) -> Iterator[Claim]:
    """Claims that the player makes a thing so."""
    for match in _DOES.finditer(sentence):
        if not _NOT_DONE.search(sentence[: match.start()]):
            trait = match["trait"] or _MADE[match["verb"].casefold()]
            thing = tuple(split_name(match["thing"] or match["made"]))
            yield Claim(match[0], "is", thing, trait=trait.casefold())


def _whereabouts(sentence: str, before: Claim | None) -> Claim | None:
    """The place the sentence leaves the player in: `before` where it says nothing, None where that is open."""
    if _NOT_HERE.search(sentence):
        return before
    stays = list(_AT.finditer(sentence))
    moves = [one for one in _MOVES.finditer(sentence) if "you" in sentence[: one.end()].casefold().split()]
    if not stays and not moves:
        return before
    last = max([*stays, *moves], key=lambda match: match.start())
    place = _WHITHER.match(sentence, last.end()) if last.re is _MOVES else last
    if place is None or _NOT_DONE.search(sentence[: last.start()]):
        return None
    words = split_name(place["thing"])
    if len(words) > 1 and words[-1].endswith("ing"):
        words.pop()  # "in the tower looking out"
    denied = last.re is _AT and bool(last["not"])
    return Claim(sentence[last.start() : place.end()], "at", tuple(words), not denied)
