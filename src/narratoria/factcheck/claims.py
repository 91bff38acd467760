"""The claims of a narration about the world, read sentence by sentence with patterns, in English.

Read as claims: that the player has a thing ("you carry the lantern", "with the lantern in hand", "you take the key"),
how many or how much of it ("you have 50 coins", "a can of oil"), that a thing is so ("the door stands wide open", "the
lamp has gone out", "the locked door", "torch lit."), and deeds that make it so ("you open the door", "you push the door
open", "the lantern glows"), and last where the player is ("you stand in the tower", "you enter the cellar"). Speech,
questions, wishes, abilities and denials are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from narratoria.narrator.english.words import NUMBERS, PARTICLES, PREPOSITIONS, split_name, word_set

MAX_CLAIMS: Final = 24
_MAX_TEXT: Final = 8_000

# "You have a bad feeling": nobody keeps these in an inventory.
_ABSTRACT: Final = word_set(
    "feeling breath idea chance moment choice time doubt sense right view look hand hands question point way "
    "thought memory plan reason glimpse seat step minute second hour grip gaze eye eyes silence tongue ground "
    "position line place attention hope fear courage strength luck trouble problem job duty conversation word "
    "words lot bit few balance heart mind life voice weight secret answer clue name course path head arm arms "
    "fist fists chin shoulders finger fingers foot feet face sleeve sleeves collar matter business task situation "
    "stair stairs road turn lead bait hint fate future world blame credit is are"
)
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
_THING_ENDS: Final = rf"(?=\s+(?:{_STOPS})\b|\s*[,.!?…;:—–)]|\s*$)"
_THING: Final = r"(?P<thing>(?:[\w'’-]+\s+){0,3}?[\w'’-]+)" + _THING_ENDS
# From the beginning of a word only: tried from every letter of a long one, it would take the square of its length.
_BEFORE: Final = r"(?<![\w'’-])(?P<before>(?:[\w'’-]+\s+){0,4}[\w'’-]+)\s+"

# --- having ------------------------------------------------------------------------------------------------

_HAS: Final = re.compile(
    r"\byou(?:['’]re| are)?\s+(?P<adverb>now |still |already )?"
    r"(?P<verb>have|hold|holding|carry|carrying|wield|wielding|own|pocket|pick up|brandish|brandishing|unsheathe)\s+"
    r"(?P<article>the|a|an|your|no)\s+" + _THING,
    re.IGNORECASE,
)
# "You hold the flame to the wood", "you hold the door open": a deed, and no word on whose the thing is.
_HELD_TO: Final = re.compile(
    r"hold(?:ing)?\s+(?:[\w'’-]+\s+){1,4}?"
    r"(?:to|towards?|against|up|out|over|under|near|before|back|off|down|open|shut|closed|still|steady)\b",
    re.IGNORECASE,
)
_HAS_NOT: Final = re.compile(
    r"\byou(?:\s+(?:do not|don['’]t|no longer)\s+(?:have|hold|carry|own)"
    r"|(?:['’]re|\s+are)\s+(?:not|no longer)\s+carrying|\s+aren['’]t\s+carrying)\s+"
    r"(?P<article>the|a|an|your|any)\s+" + _THING,
    re.IGNORECASE,
)
_IN_HAND: Final = re.compile(
    r"\b(?:your|with\s+(?:the|a|an))\s+(?P<thing>(?:[\w'’-]+\s+){0,2}?[\w'’-]+)\s+"
    r"in\s+(?:your\s+|one\s+|both\s+)?hands?\b(?!['’])",
    re.IGNORECASE,
)
_KEPT: Final = re.compile(
    r"\b(?:the|your)\s+(?P<thing>(?:[\w'’-]+\s+){0,2}?[\w'’-]+)\s+(?:is|are|lies|lie|rests|rest|sits|sit)\s+"
    r"(?:(?:now|still|already|safe|safely|snug)\s+)*"
    r"(?:in\s+your\s+(?:pocket|pockets|hand|bag|pack|backpack|satchel|coat)|(?:on|at|in)\s+your\s+belt)\b",
    re.IGNORECASE,
)
# "The tower is yours" need not mean that it is carried about; "and you carry it" does.
_YOURS: Final = re.compile(
    r"\b(?:the|this)\s+(?P<thing>(?:[\w'’-]+\s+){0,2}?[\w'’-]+)\s+(?:is|are)\s+(?:now\s+)?yours\b"
    r"(?P<carried>.*\byou\s+(?:now\s+)?(?:carry|hold|pocket|wear|wield)\s+(?:it|them)\b)?",
    re.IGNORECASE,
)
# "You take the stairs", "you take the boy by the arm": only a thing the state keeps elsewhere, or one that nobody
# takes but to have it, can prove it wrong.
_TAKES: Final = re.compile(
    r"\byou\s+(?:now |then |quickly |slowly |carefully |quietly )?(?:take|grab|snatch up|snatch|pocket)\s+"
    r"(?P<article>the|your)\s+" + _THING,
    re.IGNORECASE,
)
_TAKEN_TO_HAVE: Final = word_set(
    "key keys coin coins purse sword dagger amulet ring necklace crown gem gems jewel jewels potion vial scroll"
)
# What is taken is not kept: "you take the book down, read a page and put it back".
_LET_GO: Final = re.compile(
    r"\b(?:(?:put|set|lay|hang|place|drop|give|hand|throw|toss|return|replace|lower|pour)\s+(?:it|them|the|down|back)"
    r"|leave\s+(?:it|them)|let\s+(?:it|them)?\s*(?:go|fall))\b",
    re.IGNORECASE,
)
# A cloak may be drawn and a glass raised that no state knows of: these can only be denied by what it knows.
_HANDLES: Final = re.compile(
    r"\byou\s+(?:draw|raise|lift|swing|grip|clutch|grasp|shoulder|sheathe)\s+your\s+" + _THING, re.IGNORECASE
)
_IS_GIVEN: Final = re.compile(
    r"\b(?:gives|hands|passes|tosses)\s+you\s+(?:the|a|an|your|his|her|their)\s+" + _THING, re.IGNORECASE
)
# "A can of oil", "forty feet of rope": what is had is the oil, unless the state knows of the can.
_MEASURES: Final = (
    "can tin cup bottle flask jar jug bucket bag sack box crate coil length piece pair handful bunch bundle set roll "
    "loaf slice glass mug bowl pot vial pinch sheaf stack pile barrel cask lump scrap drop string sheet ball pack "
    "purse foot feet yard yards inch inches pound pounds pint pints litre litres bit bits dozen"
)
_MEASURED: Final = re.compile(
    r"\byou(?:['’]re| are)?\s+(?:now |still |already )?(?:have|hold|holding|carry|carrying|own)\s+"
    rf"(?P<no>no\s+)?(?:[\w'’-]+\s+){{0,3}}?(?P<measure>{'|'.join(f'{one}s?' for one in _MEASURES.split())})\s+of\s+"
    r"(?:the\s+)?" + _THING,
    re.IGNORECASE,
)
_LOST: Final = re.compile(
    r"\byour\s+(?P<thing>(?:[\w'’-]+\s+){0,2}?[\w'’-]+)\s+(?:is|are)\s+(?:gone|missing|lost)\b", re.IGNORECASE
)
_COUNTED: Final = "|".join(word for word, value in NUMBERS.items() if value)
_HOW_MANY: Final = re.compile(
    rf"\byou\s+(?:now |still |already )?(?:have|hold|carry|own)\s+(?P<count>\d[\d,]*|{_COUNTED})\s+" + _THING,
    re.IGNORECASE,
)

# --- being -------------------------------------------------------------------------------------------------

_IS: Final = re.compile(
    _BEFORE
    + r"(?:(?P<be>is|are|stands|hangs|remains|remain|stays|stay|lies|sits|(?:has|have) (?:been|gone|swung|fallen)|"
    r"swings|slams|creaks|grinds|flies|bursts|falls|goes|burns|flickers|gutters|dies|winks)|(?P<isnt>isn['’]t|aren['’]t))\s+"
    r"(?P<adverb>(?:now|still|already|again|fully|finally|firmly|securely|tightly|quite|half|wide)\s+)?"
    r"(?P<not>not\s+|no longer\s+)?(?P<trait>[a-z]+(?:-[a-z]+)?)\b(?!\s+of\b)",
    re.IGNORECASE,
)
# What a thing does by itself, and what it is then: "the lantern glows", but not "the door opens onto the yard".
_BY_ITSELF: Final[Mapping[str, str]] = {
    "glows": "lit",
    "burns": "lit",
    "blazes": "lit",
    "ignites": "lit",
    "opens": "open",
    "closes": "closed",
    "shuts": "closed",
}
_ACTS: Final = re.compile(
    _BEFORE + rf"(?P<verb>{'|'.join(_BY_ITSELF)})\b"
    r"(?!\s+(?:out|off|no|not|less|on|onto|into|to|upon|from|the|a|an|his|her|its|their|your|my|our|up)\b)",
    re.IGNORECASE,
)
# What is done to a thing: by the player, or by somebody else.
_DEEDS: Final[Mapping[str, str]] = {
    "open": "open",
    "close": "closed",
    "shut": "closed",
    "lock": "locked",
    "bolt": "locked",
    "unlock": "unlocked",
    "light": "lit",
    "ignite": "lit",
    "extinguish": "unlit",
    "douse": "unlit",
    "snuff": "unlit",
    "snuff out": "unlit",
    "blow out": "unlit",
    "put out": "unlit",
    "smash": "broken",
    "shatter": "broken",
}
_THIRD: Final = {
    f"{verb}es"
    if verb.endswith(("sh", "ss"))
    else f"{verb}s"
    if " " not in verb
    else f"{verb.split()[0]}s {verb.split()[1]}": trait
    for verb, trait in _DEEDS.items()
}
_MADE: Final = {**_DEEDS, **_THIRD}
_DOES: Final = re.compile(
    rf"\b(?:(?:you|and|then)\s+(?:now |then |quickly |slowly |carefully )?(?P<you>{'|'.join(_DEEDS)})"
    rf"|(?P<other>{'|'.join(_THIRD)}))\s+(?:the|your)\s+" + _THING,
    re.IGNORECASE,
)
_RESULT: Final = (
    "push|pull|swing|shove|force|throw|kick|pry|prise|wrench|heave|yank|drag|slide|ease|haul|fling|slam"
)
_DOES_SO: Final = re.compile(
    rf"\b(?:you|and|then)\s+(?:now |then |quickly |slowly |carefully )?(?:{_RESULT})\s+(?:"
    r"(?:the|your)\s+(?P<thing>(?:[\w'’-]+\s+){0,3}?[\w'’-]+)\s+(?:wide\s+)?(?P<trait>open|shut|closed)\b"
    r"|(?P<first>open|shut)\s+(?:the|your)\s+" + _THING.replace("<thing>", "<last>") + ")",
    re.IGNORECASE,
)
# "Torch lit.": how tools report. With an article it would be a tale of what happened once: "The door shut."
_TERSE: Final = re.compile(
    r"(?<![\w'’-])(?P<before>(?:(?!(?:the|a|an|you|it|he|she|they|we|i|this|that|every|each|all|both|most|half|one|other)\s)"
    r"[\w'’-]+\s+){1,3})(?:now\s+)?(?P<trait>lit|unlit|extinguished|open|opened|closed|shut|locked|unlocked|bolted|"
    r"unbolted|barred|broken|smashed|filled)(?:\s+(?:now|again))?\s*[.!…;:]?$",
    re.IGNORECASE,
)
_ATTRIBUTE: Final = re.compile(
    r"\b(?:the|your)\s+(?P<trait>locked|unlocked|bolted|barred|lit|unlit|extinguished|open|closed|shut)\s+"
    + r"(?P<thing>[\w'’-]+)\b",
    re.IGNORECASE,
)

# --- being somewhere -----------------------------------------------------------------------------------------

_SET: Final = r"(?:the|a|an|your|his|her|their)\s+"
_AT: Final = re.compile(
    r"\byou\s*(?:(?:['’]re| are| find yourself)\s+(?P<not>not |no longer )?"
    r"(?:(?:now|still|already|alone|back|again)\s+)?"
    r"(?:(?:standing|sitting|waiting|kneeling|lying)\s+(?:(?:alone|again)\s+)?)?"
    r"|\s(?:(?:now|still|again)\s+)?(?:stand|sit|wait|kneel|lie|remain|linger)\s+(?:(?:alone|again|now|still)\s+)?)"
    r"(?:in|inside|within|on)\s+" + _SET + _THING,
    re.IGNORECASE,
)
_MOVES: Final = re.compile(
    r"\b(?:you|and|then)\s+(?:(?:now|then|slowly|quickly|carefully)\s+)?"
    r"(?:leave|enter|go|walk|climb|run|head|ascend|descend|follow|step|move|hurry|cross|return|come|arrive|emerge|reach|"
    r"make your way)\b",
    re.IGNORECASE,
)
_WHITHER: Final = re.compile(
    r"(?:(?<=enter)|\s+(?:back\s+)?(?:(?:up|down|out)\s+)?(?:into|onto)|(?<=arrive)\s+(?:back\s+)?(?:in|on)|(?<=return)\s+to)\s+"
    + _SET
    + _THING,
    re.IGNORECASE,
)
_NOT_HERE: Final = re.compile(
    r"\b(picture|painting|photograph|portrait|mirror|mind|memory|map|thought|eye)s?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of one sentence: the player has `thing`, `count` times if given, or it is `trait`; or not.

    Or that `thing` is the place where the player is.
    """

    text: str
    kind: Literal["has", "is", "at"]
    thing: tuple[str, ...]
    expected: bool = True
    trait: str = ""
    firm: bool = True  # False for "you have a visitor": only a thing the state knows can prove it wrong
    count: int | None = None
    of: tuple[str, ...] = ()  # what it is a measure of: the oil of "a can of oil"


def claims(narration: str) -> list[Claim]:
    """The claims a narration makes, in order; speech and whatever is not asserted left out."""
    found: list[Claim] = []
    at: Claim | None = None  # only where it ends: a narration may pass through many places
    text = _SPEECH.sub(" — ", narration[:_MAX_TEXT])
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(match[0].split())  # a run of a thousand spaces would be tried from each of them
        if sentence.endswith("?") or _HEDGE.search(sentence):
            continue
        found.extend(_possessions(sentence))
        found.extend(_takings(sentence, text, match.start()))
        found.extend(_traits(sentence))
        found.extend(_deeds(sentence))
        at = _whereabouts(sentence, at)
        if len(found) >= MAX_CLAIMS:
            break
    return [*found[: MAX_CLAIMS - 1], at] if at else found[:MAX_CLAIMS]


def _possessions(sentence: str) -> Iterator[Claim]:
    measured = list(_MEASURED.finditer(sentence))
    for match in measured:
        words = tuple(split_name(match["thing"]))
        yield Claim(match[0], "has", (match["measure"].casefold(),), not match["no"], firm=False, of=words)
    for match in _HAS.finditer(sentence):
        if any(one.start() == match.start() for one in measured):
            continue
        firm = match["verb"].casefold() not in ("have", "own") or (match["adverb"] or "").strip() == "now"
        firm = firm and not _HELD_TO.match(sentence, match.start("verb"))
        yield from _had(match, expected=match["article"].casefold() != "no", firm=firm)
    for match in _HAS_NOT.finditer(sentence):
        yield from _had(match, expected=False)
    for pattern in (_IN_HAND, _KEPT):
        for match in pattern.finditer(sentence):
            yield from _had(match)
    for match in _YOURS.finditer(sentence):
        yield from _had(match, firm=bool(match["carried"]))
    for pattern in (_HANDLES, _IS_GIVEN):
        for match in pattern.finditer(sentence):
            yield from _had(match, firm=False)
    for match in _LOST.finditer(sentence):
        yield from _had(match, expected=False, firm=False)
    for match in _HOW_MANY.finditer(sentence):
        said = match["count"].casefold()
        yield from _had(match, firm=False, count=NUMBERS.get(said) or int(said.replace(",", "")))


def _takings(sentence: str, text: str, start: int) -> Iterator[Claim]:
    for match in _TAKES.finditer(sentence):
        words = split_name(match["thing"])
        after = text.find(match[0], start) + len(match[0])
        if words and not _LET_GO.search(text, after):
            yield from _had(match, firm=words[-1] in _TAKEN_TO_HAVE)


def _had(
    match: re.Match[str], *, expected: bool = True, firm: bool = True, count: int | None = None
) -> Iterator[Claim]:
    words = tuple(split_name(match["thing"]))
    if words and words[-1] not in _ABSTRACT:
        yield Claim(match[0], "has", words, expected, firm=firm, count=count)


def _traits(sentence: str) -> Iterator[Claim]:
    start = 0
    while match := _IS.search(sentence, start):
        start = match.end("before") + 1
        if not _DENIAL.search(match["before"]):
            denied = bool(match["not"] or match["isnt"])
            words = tuple(split_name(match["before"]))
            yield Claim(match[0], "is", words, not denied, match["trait"].casefold())
    if (terse := _TERSE.match(sentence)) and not _DENIAL.search(terse["before"]):
        thing = tuple(split_name(terse["before"]))
        yield Claim(terse[0].rstrip(" .!…;:"), "is", thing, trait=terse["trait"].casefold())
    for match in _ATTRIBUTE.finditer(sentence):
        yield Claim(match[0], "is", tuple(split_name(match["thing"])), trait=match["trait"].casefold())


def _deeds(sentence: str) -> Iterator[Claim]:
    for match in _ACTS.finditer(sentence):
        if not _DENIAL.search(match["before"]):
            trait = _BY_ITSELF[match["verb"].casefold()]
            yield Claim(match[0], "is", tuple(split_name(match["before"])), trait=trait)
    for match in _DOES_SO.finditer(sentence):
        if not _NOT_DONE.search(sentence[: match.start()]):
            thing, trait = match["thing"] or match["last"], match["trait"] or match["first"]
            yield Claim(match[0], "is", tuple(split_name(thing)), trait=trait.casefold())
    for match in _DOES.finditer(sentence):
        if not _NOT_DONE.search(sentence[: match.start()]):
            trait = _MADE[(match["you"] or match["other"]).casefold()]
            yield Claim(match[0], "is", tuple(split_name(match["thing"])), trait=trait)


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
