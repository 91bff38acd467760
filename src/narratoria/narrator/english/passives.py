"""Passives and other forms of a verb as the plain order: "the kettle is scrubbed" is "scrub the kettle"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.tokens import Token
from narratoria.narrator.english.words import FILLERS, NOUNISH, VERBS, is_past, stem, word_set

IsVerb: TypeAlias = Callable[[str], bool]

_BE: Final = word_set("is are was were been being gets be")
_PARTICIPLES: Final = words("irregular.not_past") | word_set("set cut hit")
_BASES: Final = {stem(verb): verb for verb in sorted((VERBS | NOUNISH) - word_set("got went took made lit"))}


def active(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "the kettle is scrubbed" as "scrub the kettle"; None where the clause is not passive."""
    be = next((at for at in range(1, len(tokens) - 1) if tokens[at].low in _BE and not tokens[at].quoted), 0)
    if not be:
        return None
    done = be + 1
    while done < len(tokens) - 1 and tokens[done].low in _BE | FILLERS:
        done += 1
    if not _is_participle(tokens[done], is_verb):
        return None
    end = be - 1 if be > 1 and tokens[be - 1].low in ("has", "have", "had", "will") else be
    return [based(tokens[done], is_verb), *tokens[:end], *tokens[done + 1 :]]


def _is_participle(token: Token, is_verb: IsVerb) -> bool:
    shaped = is_past(token.low) or token.low in _PARTICIPLES
    return shaped and not token.quoted and (stem(token.low) in _BASES or is_verb(token.low))


def based(token: Token, is_verb: IsVerb) -> Token:
    """ "scanning" and "scanned" as "scan"; anything else as it is."""
    if token.quoted or not (is_gerund(token) or _is_participle(token, is_verb)):
        return token
    base = _BASES.get(stem(token.low), token.low)
    return Token(base, base)


def is_gerund(token: Token) -> bool:
    """Tells if a token has the form of "scanning"."""
    return token.low.endswith("ing") and len(token.low) > 4
