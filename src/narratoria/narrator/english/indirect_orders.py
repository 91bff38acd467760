"""Orders in another voice, turned into plain ones: "have Ruiz fix it", "get it fixed", "once it is fixed"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from narratoria.narrator.english.prohibitions import after_outcome
from narratoria.narrator.english.tokens import Token
from narratoria.narrator.english.verbs import families
from narratoria.narrator.english.words import (
    DETERMINERS,
    FILLERS,
    NOUNISH,
    PARTICLES,
    PREPOSITIONS,
    PRONOUNS,
    SUBJECTS,
    VERB_STEMS,
    VERBS,
    stem,
    word_set,
)

IsVerb = Callable[[str], bool]

_BASE: Final = {stem(verb): verb for verb in sorted((VERBS | NOUNISH) - word_set("got went took made lit"))}
_PARTICIPLES: Final = word_set(
    "set cut put shut lit done made sent paid read sold bought brought built caught taken given written told "
    "broken opened kept held left hit hung fed found sealed swept shown torn worn spun won"
)
_BE: Final = word_set("is are was were been being gets be")
_CAUSES: Final = word_set("have let")
_ASKS: Final = word_set("can could will would")
_SENDS: Final = word_set("get ask tell order send instruct command")
_WANTS: Final = word_set("get have want need like wish")
_MOVES: Final = word_set("pull push slide swing force prise pry kick slam throw bang shove press heave roll")
_LONGEST_NAME: Final = 3


def plain_order(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token]:
    """The clause as its author would have typed it plainly; unchanged where it is plain already."""
    turned = (
        _to_be_so(tokens, is_verb)
        or _by_somebody(tokens, is_verb)
        or _named_first(tokens, is_verb)
        or _wished_done(tokens, is_verb)
    )
    return turned or _moved_open(tokens) or _made_more(tokens) or list(tokens)


def active(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "the kettle is scrubbed" as "scrub the kettle"; None where the clause is not passive."""
    for at in range(1, len(tokens) - 1):
        if tokens[at].low in _BE and not tokens[at].quoted:
            done = at + 1
            while done < len(tokens) - 1 and tokens[done].low in _BE | FILLERS:
                done += 1
            if not _is_participle(tokens[done], is_verb):
                return None
            start = at - 1 if tokens[at - 1].low in ("has", "have", "had", "will") and at > 1 else at
            return [_based(tokens[done]), *tokens[:start], *tokens[done + 1 :]]
    return None


def in_base_form(token: Token, is_verb: IsVerb) -> Token:
    """ "scanning" and "scanned" as "scan"; anything else as it is."""
    shaped = (token.low.endswith("ing") and len(token.low) > 4) or _is_participle(token, is_verb)
    return _based(token) if shaped and not token.quoted else token


def _to_be_so(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "make sure the gate stays shut", "keep the gate shut", "the gate must be shut" as "close the gate"."""
    words = ["" if token.quoted else token.low for token in tokens]
    outcome = after_outcome(words)
    start = len(words) - len(outcome) if outcome else 0
    if words[:1] == ["keep"] and len(words) > 2 and words[-1] in _STATES:
        return [_called(_STATES[words[-1]]), *tokens[1:-1]]
    if any(word in VERBS and word not in NOUNISH and word not in _BE | _STAYS for word in words[start:-1]):
        return None
    for at in range(start + 1, len(tokens) - 1):
        bids = 1 if words[at - 1] in _BIDS else 2 if words[at - 2 : at] in _BIDS_TO else 0
        stays = words[at] in _STAYS
        if stays or (words[at] == "be" and bids) or (outcome and words[at] in _BE):
            verb = _STATES.get(words[at + 1])
            done = _called(verb) if verb else _based(tokens[at + 1])
            known = verb or (not stays and _is_participle(tokens[at + 1], is_verb))
            thing = tokens[start : at - bids]
            return [done, *thing, *tokens[at + 2 :]] if known and thing else None
    return None


_STATES: Final = {
    "open": "open", "shut": "close", "closed": "close", "locked": "lock", "unlocked": "unlock", "sealed": "seal",
    "lit": "light", "full": "fill", "empty": "empty",
}  # fmt: skip
_STAYS: Final = word_set("stays remains stay remain")
_BIDS: Final = word_set("should must shall")
_BIDS_TO: Final = (["has", "to"], ["have", "to"], ["ought", "to"], ["needs", "to"], ["need", "to"])


def _called(verb: str) -> Token:
    return Token(verb, verb)


def _by_somebody(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "have Ruiz fix the antenna" as "fix the antenna by Ruiz"."""
    if len(tokens) < 3 or tokens[0].quoted:
        return None
    head = tokens[0].low
    if head not in _CAUSES | _ASKS | _SENDS or tokens[1].low in ("a", "an", "some", "me", "us", "it", "not"):
        return None
    start = 2 if tokens[1].low in DETERMINERS else 1
    if start == 2 and head not in _CAUSES:
        return None
    for at in range(start + 1, min(start + 1 + _LONGEST_NAME, len(tokens))):
        infinitive = tokens[at].low == "to" and head in _SENDS
        verb = at + 1 if infinitive else at
        if verb >= len(tokens) or any(token.quoted for token in tokens[start : verb + 1]):
            return None
        if (infinitive or head not in _SENDS) and _is_verb(tokens, verb, is_verb):
            # Who may be sent: somebody by name, or whoever the catalogue itself sends in these words.
            named = start == 1 and all(token.text[:1].isupper() for token in tokens[1:at])
            ordered = head == "get" or (is_verb(tokens[verb].low) and not is_verb(head))
            if head in _SENDS and not (named and ordered):
                return None
            by = Token("by", "by")
            return [*tokens[verb:], by, *tokens[1:at]]
        if tokens[at].low in PREPOSITIONS | PRONOUNS | SUBJECTS or not tokens[at].low[0].isalpha():
            return None
    return None


def _named_first(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "Ruiz should fix the antenna", "Hana Okafor would like to borrow the atlas"."""
    for at in range(1, min(_LONGEST_NAME + 1, len(tokens) - 2)):
        wish = 3 if [t.low for t in tokens[at : at + 3]] == ["would", "like", "to"] else 2
        wishes = wish == 3 or (tokens[at].low in ("wants", "needs", "wishes") and tokens[at + 1].low == "to")
        named = (
            all(t.text[:1].isupper() and not t.quoted for t in tokens[:at]) and tokens[0].low not in SUBJECTS
        )
        if wishes and named and at + wish < len(tokens) and _is_verb(tokens, at + wish, is_verb):
            return [*tokens[at + wish :], Token("for", "for"), *tokens[:at]]
    if len(tokens) < 4 or tokens[0].quoted or not tokens[0].text[:1].isupper():
        return None
    bidden = tokens[1].low in ("should", "must", "shall", "can", "could")
    if bidden and tokens[0].low not in SUBJECTS | DETERMINERS and _is_verb(tokens, 2, is_verb):
        return [*tokens[2:], Token("by", "by"), tokens[0]]
    return None


def _moved_open(tokens: Sequence[Token]) -> list[Token] | None:
    """ "pull the door open", "slam it shut": what counts is how it ends."""
    last = tokens[-1].low if tokens else ""
    if len(tokens) < 3 or tokens[0].low not in _MOVES or last not in ("open", "shut", "closed"):
        return None
    end = "open" if last == "open" else "close"
    return [Token(end, end), *tokens[1:-1]]


def _made_more(tokens: Sequence[Token]) -> list[Token] | None:
    """ "make it brighter" as "brighten it"."""
    last = tokens[-1].low if tokens else ""
    if len(tokens) < 3 or tokens[0].low != "make" or not last.endswith("er") or len(last) < 6:
        return None
    verb = last.removesuffix("er") + "en"
    return [Token(verb, verb), *tokens[1:-1]] if families(verb) else None


def _wished_done(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "get it fixed", "I want the lamp lit" as "fix it", "light the lamp"."""
    at = 0
    while at < len(tokens) and tokens[at].low in ("i", "we", "would", "please"):
        at += 1
    if at >= len(tokens) or tokens[at].low not in _WANTS or at + 2 >= len(tokens):
        return None
    for done in range(at + 2, len(tokens)):
        word = tokens[done].low
        if tokens[done].quoted or word in PREPOSITIONS or word == "to":
            return None
        last = done + 1 == len(tokens) or tokens[done + 1].low in PREPOSITIONS | FILLERS | PARTICLES | {","}
        if last and _is_participle(tokens[done], is_verb) and tokens[done - 1].low not in DETERMINERS:
            return [_based(tokens[done]), *tokens[at + 1 : done], *tokens[done + 1 :]]
    return None


def _is_verb(tokens: Sequence[Token], at: int, is_verb: IsVerb) -> bool:
    word = tokens[at].low
    if at + 1 == len(tokens) and word in NOUNISH:
        return False
    return word in VERBS or word in NOUNISH or is_verb(word)


def _is_participle(token: Token, is_verb: IsVerb) -> bool:
    shaped = token.low in _PARTICIPLES or (token.low.endswith("ed") and len(token.low) > 4)
    return shaped and not token.quoted and (stem(token.low) in VERB_STEMS or is_verb(token.low))


def _based(token: Token) -> Token:
    base = _BASE.get(stem(token.low), token.low)
    return Token(base, base)
