"""Noun phrases: words side by side that name one thing, or somebody and something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from narratoria.narrator.english.named_things import EntityFinder, Mention, is_being
from narratoria.narrator.english.tokens import Token, as_typed
from narratoria.narrator.english.words import FILLERS, PARTICLES

EVERYTHING: Final = "everything"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase, or a subordinate clause that fills its place."""

    prep: str  # "" for an object without one
    start: int  # token indices in the clause, without determiners, end exclusive
    end: int
    text: str
    mention: Mention | None = None
    quoted: bool = False
    pronoun: str | None = None
    joined: bool = False  # it continues a list: "the cup and the rope"
    clausal: bool = False  # "to call the bank", "where she was"
    owner: bool = False  # the pronoun is possessive: "its log"
    every: str = ""  # "both", "all", "every", "each": more than one is meant
    about: Mention | None = None  # of a quotation: a thing it speaks of


@dataclass(frozen=True, slots=True)
class Span:
    """Words side by side that make one noun phrase, or two: "send Lindqvist flowers"."""

    tokens: Sequence[Token]
    start: int
    end: int
    prep: str
    joined: bool
    finder: EntityFinder

    def phrases(self, *, asks: bool, gives: bool) -> list[Phrase]:
        """The phrases; `asks` in a question, `gives` where the verb takes somebody and something."""
        span = self._trimmed()
        if span.start == span.end:
            return []
        mention = span._find(span.start, span.end)
        if not mention and span.end - span.start > 1:
            first, second = (token.text[:1] for token in self.tokens[span.start : span.start + 2])
            if first.isupper() and second.islower():  # "Priya's card"
                mention = span._find(span.start, span.start + 1)
            elif asks and (mention := span._find(span.start, span.end - 1)):
                span = replace(span, end=span.end - 1)  # "does the blood *match* …"
        if mention and mention.end < span.end - 1 and (extra := span._find(mention.end, span.end)):
            return span._two(mention.end, mention, extra.start, extra)
        if gives and (two := span._gift(mention)):
            return two
        return [span._phrase(mention, every=_quantifier(self.tokens, span.start))]

    def _gift(self, mention: Mention | None) -> list[Phrase]:
        """Two phrases, who gets it and what: "tell Mara hermit secrets"; or none."""
        tokens, start, end = self.tokens, self.start, self.end
        if mention and mention.start > start and (whom := self._opens_with(mention.start)):
            return self._two(whom.end, whom, mention.start, mention)
        if not mention or self.prep or _quantifier(tokens, start):
            return []
        whole = mention.start == start and mention.end < end and mention.strength >= 1.0
        somebody = tokens[start].text[:1].isupper() or is_being(mention.entity)
        return self._two(mention.end, mention, mention.end, None) if whole and somebody else []

    def _two(self, end: int, first: Mention, start: int, second: Mention | None) -> list[Phrase]:
        rest = Phrase("", start, self.end, " ".join(as_typed(self.tokens[start : self.end])), second)
        return [replace(self, end=end)._phrase(first), rest]

    def _phrase(self, mention: Mention | None, every: str = "") -> Phrase:
        text = " ".join(as_typed(self.tokens[self.start : self.end]))
        return Phrase(self.prep, self.start, self.end, text, mention, joined=self.joined, every=every)

    def _trimmed(self) -> Span:
        start, end = self.start, self.end
        while start < end and self.tokens[start].low in FILLERS:
            start += 1
        while end > start and (self.tokens[end - 1].low in FILLERS or self.tokens[end - 1].low in PARTICLES):
            end -= 1
        return replace(self, start=start, end=end)

    def _find(self, start: int, end: int) -> Mention | None:
        return self.finder.find(self.tokens, start, end)

    def _opens_with(self, end: int) -> Mention | None:
        """The thing that the words up to `end` name to the last."""
        mention = self._find(self.start, end)
        return mention if mention and mention.end == end else None


def _quantifier(tokens: Sequence[Token], start: int) -> str:
    """ "both pans", "all the invoices", "each of the doors"."""
    if tokens[start].low == EVERYTHING:
        return "all"
    at = start - 1
    while at >= 0 and tokens[at].low in ("the", "my", "our", "your", "of", "these", "those"):
        at -= 1
    return tokens[at].low if at >= 0 and tokens[at].low in ("both", "all", "every", "each") else ""
