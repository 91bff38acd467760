"""The claims of a narration about the world, read sentence by sentence with patterns, in English.

Read as claims: that the player has a thing ("you carry the lantern", "you take the key"), that a thing is so ("the door
stands wide open", "the lamp has gone out", "the lantern glows", "torch lit."), actions of the player that make it so
("you open the door", "you push the door open"), and where the player is ("you stand in the tower", "you enter the
cellar"). Speech, questions, wishes, abilities and denials are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from narratoria.narrator.english.words import PARTICLES, PREPOSITIONS, split_name, word_set

MAX_CLAIMS: Final = 24
_MAX_TEXT: Final = 8_000

_SPEECH: Final = re.compile(r"“[^”]*”|\"[^\"]*\"|«[^»]*»|‘[^’]{2,}’(?!\w)")
_SENTENCE: Final = re.compile(r"[^.!?…;:\n]+[.!?…;:\n]?")
_HEDGE: Final = re.compile(
    r"\b(if|whether|unless|until|would|could|might|may|must|should|will|as though|like|seems?|perhaps|maybe|imagine|"
    r"wish|want|need|remember|dream|once|used to|almost|nearly|try|tries|before|when|so that)\b",
    re.IGNORECASE,
)
_DENIAL: Final = re.compile(r"\b(no|nobody|none|neither|never|nothing|no one)\b", re.IGNORECASE)
# "You can go back and light the lamp" does not light it.
_NOT_DONE: Final = re.compile(
    r"\b(can|cannot|can['’]t|to|not|don['’]t|doesn['’]t|never|nobody|let|lets)\b", re.IGNORECASE
)
_STOPS: Final = "|".join(
    sorted(PREPOSITIONS | PARTICLES | word_set("and or but that which while now again any ready"))
)
_THING: Final = rf"(?P<thing>(?:[\w'’-]+\s+){{0,3}}?[\w'’-]+)(?=\s+(?:{_STOPS})\b|\s*[,.!?…;:—–)]|\s*$)"
# From the beginning of a word only: tried from every letter of a long one, it would take the square of its length.
_BEFORE: Final = r"(?<![\w'’-])(?P<before>(?:[\w'’-]+\s+){0,4}[\w'’-]+)\s+"
_ADVERB: Final = r"(?:(?:now|then|still|already|again|\w+ly)\s+)?"

# --- having ------------------------------------------------------------------------------------------------

_HAS: Final = re.compile(
    rf"\byou(?:['’]re| are)?\s+(?P<not>do not |don['’]t |not |no longer )?{_ADVERB}"
    r"(?P<verb>have|own|hold|holding|carry|carrying|wield|wielding|take|grab|pocket|pick up)\s+"
    r"(?:the|a|an|your|any|(?P<no>no))\s+(?P<part>\w+\s+of\s+(?:the\s+)?)?" + _THING,
    re.IGNORECASE,
)
_IN_HAND: Final = re.compile(
    r"\b(?:your|with\s+(?:the|a|an))\s+(?P<thing>(?:[\w'’-]+\s+){0,2}?[\w'’-]+)\s+"
    r"in\s+(?:your\s+|one\s+|both\s+)?hands?\b(?!['’])",
    re.IGNORECASE,
)
# "You take the stairs", "you have a visitor" need not speak of possessions; these do,
_FIRM: Final = word_set("hold holding carry carrying wield wielding pocket pick")
# but for what no bag holds: "you carry the blame", "you hold your breath", "you pick up the pace",
_ABSTRACT: Final = word_set(
    "weight burden blame secret message news word words memory memories hope fear guilt grief name pace trail scent "
    "thread path road conversation story signal sound habit child voice duty task breath hand hands gaze eye eyes "
    "tongue ground position line place attention moment view look arm arms head finger fingers balance grip heart mind"
)
# and "you hold the flame to the wood", "you hold the door open".
_HELD_TO: Final = re.compile(
    r"hold(?:ing)?\s+(?:[\w'’-]+\s+){1,4}?"
    r"(?:to|towards?|against|up|out|over|under|near|before|back|off|down|open|shut|closed|still|steady)\b",
    re.IGNORECASE,
)
_GETS: Final = word_set("take grab pocket pick")
# What is taken is not kept: "you take the book down, read a page and put it back".
_LET_GO: Final = re.compile(
    r"\b(?:(?:put|set|lay|hang|place|drop|give|hand|throw|toss|return|replace|lower|pour)\s+(?:it|them|the|down|back)"
    r"|leave\s+(?:it|them)|let\s+(?:it|them)?\s*(?:go|fall))\b",
    re.IGNORECASE,
)

# --- being -------------------------------------------------------------------------------------------------

# What a thing does by itself, and what it is then: "the lantern glows", but not "the door opens onto the yard".
_BY_ITSELF: Final[Mapping[str, str]] = {
    "glows": "lit",
    "burns": "lit",
    "opens": "open",
    "closes": "closed",
    "shuts": "closed",
}
_IS: Final = re.compile(
    _BEFORE
    + rf"(?:(?P<turns>{'|'.join(_BY_ITSELF)})\b(?=\s*[,.!…;:—–]|\s*$|\s+(?:and|again|at|in|low|bright|with)\b)|"
    r"(?:is|are|stands|hangs|remains?|stays?|lies|sits|(?:has|have) (?:been|gone|swung|fallen)|swings|slams|creaks|"
    r"flies|bursts|falls|goes|burns|gutters|dies|(?P<isnt>isn['’]t|aren['’]t))\s+"
    r"(?:(?:now|still|already|again|half|wide|quite|\w+ly)\s+)?"
    r"(?P<not>not\s+|no longer\s+)?(?P<trait>[a-z]+(?:-[a-z]+)?)\b(?!\s+of\b))",
    re.IGNORECASE,
)
# "Torch lit.": how tools report. With an article it would be a tale of what happened once: "The door shut."
_TERSE: Final = re.compile(
    r"(?<![\w'’-])(?P<before>(?:(?!(?:the|a|an|you|it|he|she|they|we|i|this|that|every|each|all|both|most|half|one|other)\s)"
    r"[\w'’-]+\s+){1,3})(?:now\s+)?(?P<trait>lit|unlit|extinguished|open|opened|closed|shut|locked|unlocked|bolted|"
    r"unbolted|barred|broken|smashed|filled)(?:\s+(?:now|again))?\s*[.!…;:]?$",
    re.IGNORECASE,
)
_MADE: Final[Mapping[str, str]] = {
    "open": "open",
    "close": "closed",
    "shut": "closed",
    "lock": "locked",
    "bolt": "locked",
    "unlock": "unlocked",
    "light": "lit",
    "extinguish": "unlit",
    "snuff out": "unlit",
    "blow out": "unlit",
    "put out": "unlit",
    "smash": "broken",
}
_DOES: Final = re.compile(
    rf"\b(?:you|and|then)\s+{_ADVERB}(?:(?P<verb>{'|'.join(_MADE)})\s+(?:the|your)\s+{_THING}"
    r"|(?:push|pull|swing|shove|force|throw|kick|pry|slide|slam)\s+(?:the|your)\s+(?P<made>(?:[\w'’-]+\s+){0,3}?[\w'’-]+)\s+(?:wide\s+)?(?P<trait>open|shut|closed)\b)",
    re.IGNORECASE,
)

# --- being somewhere -----------------------------------------------------------------------------------------

_SET: Final = r"(?:the|a|an|your|his|her|their)\s+"
_AT: Final = re.compile(
    r"\byou(?:['’]re|\s+are|\s+find yourself|\s+(?:now\s+|still\s+)?(?:stand|sit|wait|kneel|lie|remain|linger))\s+"
    r"(?P<not>not |no longer )?(?:(?:now|still|alone|back|again|standing|sitting|waiting|kneeling|lying)\s+){0,2}"
    r"(?:in|inside|within|on)\s+" + _SET + _THING,
    re.IGNORECASE,
)
_MOVES: Final = re.compile(
    rf"\b(?:you|and|then)\s+{_ADVERB}"
    r"(?:leave|enter|go|walk|climb|run|head|ascend|descend|follow|step|move|hurry|cross|return|come|arrive|emerge|reach|"
    r"make your way)\b",
    re.IGNORECASE,
)
_WHITHER: Final = re.compile(
    r"(?:(?<=enter)|\s+(?:back\s+)?(?:(?:up|down|out)\s+)?(?:into|onto)|(?<=arrive)\s+(?:in|on)|(?<=return)\s+to)\s+"
    + _SET
    + _THING,
    re.IGNORECASE,
)
_NOT_HERE: Final = re.compile(
    r"\b(picture|painting|photograph|portrait|mirror|mind|memory|map|thought|eye)s?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of one sentence: the player has `thing`, or it is `trait`, or it is the player's place; or not."""

    text: str
    kind: Literal["has", "is", "at"]
    thing: tuple[str, ...]
    expected: bool = True
    trait: str = ""
    firm: bool = False  # that the player has it is wrong, too, where the state knows of no such thing
    part: bool = (
        False  # a part or a measure of it, such as "a can of oil": a rope elsewhere denies no length of rope
    )


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
