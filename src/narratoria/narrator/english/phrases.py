"""A clause taken apart: its verb, its noun phrases with their prepositions, its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from narratoria.narrator.english import lexicon
from narratoria.narrator.english import words as en
from narratoria.narrator.english.clauses import Clause
from narratoria.narrator.english.dictation import TO_SOMEBODY
from narratoria.narrator.english.named_things import EntityFinder
from narratoria.narrator.english.noun_phrases import EVERYTHING, Phrase, Span
from narratoria.narrator.english.numerals import Quantity, quantities
from narratoria.narrator.english.tokens import Token, as_typed, join, tokenize
from narratoria.narrator.english.verbs import families

_PHRASAL: Final = lexicon.words("verbs.with_particle")
GIVES: Final = lexicon.words("verbs.gives")
_ACTIONS_IN_NOUNS: Final[dict[str, str]] = lexicon.entry("nouns.actions_in_nouns")
_ME: Final = frozenset({"me", "us", "myself"})


@dataclass(slots=True)
class Reading:
    """A clause, taken apart."""

    tokens: tuple[Token, ...]
    verb: str
    particle: str
    phrases: list[Phrase]
    quantities: list[Quantity]
    stems: list[str] = field(default_factory=list)
    body: int = 0  # where the clause goes on after its verb

    @property
    def text(self) -> str:
        """The clause as it is compared, without its quotations."""
        return join(replace(token, quoted=False) for token in self.tokens)

    @property
    def objects(self) -> list[Phrase]:
        """The phrases without a preposition, of a list the first."""
        return [one for one in self.phrases if not (one.prep or one.owner or one.joined or one.clausal)]

    @property
    def action(self) -> str:
        """The verb and the small words around the phrases: "unlock with"."""
        inside = {at for phrase in self.phrases for at in range(phrase.start, phrase.end)}
        rest = [token.low for at, token in enumerate(self.tokens) if at >= self.body and at not in inside]
        return " ".join([*([self.verb] if self.body else []), *(w for w in rest if w not in en.DETERMINERS)])


def read(clause: Clause, finder: EntityFinder) -> Reading:
    """The clause taken apart; `finder` knows the things it may speak of."""
    tokens = _with_means_last(clause.tokens, finder)
    verb, particle, index = _head(tokens, finder)
    asked = _asked_verb(tokens) if not verb else None
    phrases = _Scanner(tokens, verb, finder).scan(index, asked)
    if asked is not None:
        verb = tokens[asked].low
    body = index if verb and asked is None else 0
    if verb in lexicon.words("verbs.light_with_noun") and phrases:
        verb, phrases, body = _unfold_light_verb(tokens, verb, phrases, body)
    if not particle and verb:
        particle = next((t.low for t in tokens[-1:] if t.low in en.PARTICLES and len(tokens) > 2), "")
    stems = [en.stem(token.low) for token in tokens]
    return Reading(tokens, verb, particle, phrases, quantities(tokens), stems, body)


def _with_means_last(tokens: tuple[Token, ...], finder: EntityFinder) -> tuple[Token, ...]:
    """ "use the key to open the gate" as "open the gate with the key"."""
    to = next((at for at in range(2, len(tokens)) if tokens[at].low == "to"), 0)
    if tokens[0].low != "use" or tokens[0].quoted or not to or not _starts_infinitive(tokens, to + 1, finder):
        return tokens
    return (*tokens[to + 1 :], Token("with", "with"), *tokens[1:to])


_NO_VERB: Final = (
    en.QUESTION_WORDS | en.SUBJECTS | en.DETERMINERS | en.PREPOSITIONS | (en.AUXILIARIES - {"do", "have"})
)


def _head(tokens: Sequence[Token], finder: EntityFinder) -> tuple[str, str, int]:
    """The verb, its particle, and the place where the rest begins; no verb in questions and statements."""
    at = 0
    while at < len(tokens) - 1 and tokens[at].low in en.FILLERS and not tokens[at].quoted:
        at += 1
    if not _is_verb(tokens, at, finder):
        return "", "", at
    first, rest = tokens[at].low, at + 1
    if rest < len(tokens) and tokens[rest].low in en.PARTICLES and not tokens[rest].quoted:
        particle = tokens[rest].low
        if particle not in en.PREPOSITIONS or first in _PHRASAL or rest + 1 == len(tokens):
            return first, particle, rest + 1
    return first, "", rest


def _is_verb(tokens: Sequence[Token], at: int, finder: EntityFinder) -> bool:
    """Tell if a clause opens with a verb at `at`: one that is known, or a word with an object behind it."""
    first = tokens[at].low
    if tokens[at].quoted or not first[0].isalpha() or first in _NO_VERB:
        return False
    known = first.endswith("ing") or en.stem(first) in en.VERB_STEMS
    if known or families(first) or len(tokens) == at + 1 or _stands_before_a_name(tokens, at, finder):
        return True
    return tokens[at + 1].low in en.DETERMINERS | en.PREPOSITIONS | en.PRONOUNS


def _stands_before_a_name(tokens: Sequence[Token], at: int, finder: EntityFinder) -> bool:
    """ "wreck Bolt": a word that names nothing, right before a thing by its whole name, is what is done to it."""
    mention = finder.find(tokens, at + 1, at + 2)
    known = mention is not None and (mention.strength >= 1.0 or tokens[at + 1].text[:1].isupper())
    if mention is None or not known or finder.find(tokens, at, at + 1):
        return False
    return en.stem(tokens[at].low) not in mention.entity.holders


def _asked_verb(tokens: Sequence[Token]) -> int | None:
    """The place of the verb of a question: "what can I *see* from here", "where do the exits *lead*"."""
    words = [token.low for token in tokens]
    if words[0] not in en.QUESTION_WORDS and words[0] not in en.AUXILIARIES:
        return None
    for index in range(1, len(words)):
        follows = words[index - 1] in en.SUBJECTS or "do" in words[:index] or "does" in words[:index]
        free = words[index - 1] not in en.DETERMINERS and not tokens[index].quoted
        if follows and free and (words[index] in en.VERBS or words[index] in ("know", "match")):
            return index
    return None


class _Scanner:
    """Reads the noun phrases of a clause from left to right."""

    def __init__(self, tokens: Sequence[Token], verb: str, finder: EntityFinder) -> None:
        self.tokens, self.verb, self.finder = tokens, verb, finder
        self.gives = verb in GIVES | TO_SOMEBODY
        self.phrases: list[Phrase] = []
        self.prep, self.joined = "", False
        self.start: int | None = None  # of the phrase that is being read

    def scan(self, index: int, asked: int | None) -> list[Phrase]:
        """The phrases from `index` on; `asked` is the place of a question's verb."""
        for at in range(index, len(self.tokens)):
            if at == asked:
                self._end(at)
            elif self.tokens[at].quoted:
                self._quote(at)
            elif self._opens_subordinate(at):
                return self.phrases
            elif not self._is_structure(at) and not self._is_determiner(at) and not self._is_pronoun(at):
                self.start = at if self.start is None else self.start
        self._flush(len(self.tokens))
        return self.phrases

    def _flush(self, end: int) -> None:
        if self.start is not None and end > self.start:
            span = Span(self.tokens, self.start, end, self.prep, self.joined, self.finder)
            self.phrases.extend(span.phrases(asks=not self.verb, gives=self.gives))
        self.start, self.joined = None, False

    def _end(self, at: int, prep: str = "") -> None:
        self._flush(at)
        self.prep = prep

    def _add(self, phrase: Phrase) -> None:
        """A phrase that is complete as it stands."""
        self.phrases.append(phrase)
        self.prep, self.joined = "", False

    def _quote(self, at: int) -> None:
        text = self.tokens[at].text
        self._flush(at)
        about = self.finder.find(spoken := tokenize(text), 0, len(spoken))
        self._add(Phrase(self.prep, at, at + 1, text, quoted=True, about=about))

    def _opens_subordinate(self, at: int) -> bool:
        """Takes the rest of the clause for one phrase, where it is a question, an infinitive or a statement."""
        word = self.tokens[at].low
        if word in en.QUESTION_WORDS and at > 0 and self.verb:
            self._flush(at)
            self.phrases.append(_clausal(self.tokens, at, self.prep or "about"))
            return True
        if word == "to" and _starts_infinitive(self.tokens, at + 1, self.finder):
            self._flush(at)
            self.phrases.append(_clausal(self.tokens, at + 1, "to"))
            return True
        if word not in en.AUXILIARIES or word in en.PREPOSITIONS:
            return False
        self._end(at)
        return False

    def _is_structure(self, at: int) -> bool:
        """Reads a word that ends a phrase: a preposition, a joint, an auxiliary, a mark."""
        word = self.tokens[at].low
        if word in en.PREPOSITIONS:
            self._end(at, word)
        elif word in ("and", ",", "or", "&", "plus", "but"):
            goes_on = self.start is not None or (bool(self.phrases) and self.phrases[-1].end == at)
            self._flush(at)
            self.joined = goes_on
            self.prep = self.phrases[-1].prep if self.phrases and goes_on else self.prep
        elif word in en.AUXILIARIES or word in en.QUESTION_WORDS or not word[0].isalnum():
            self._end(at)
        else:
            return False
        return True

    def _is_determiner(self, at: int) -> bool:
        word, tokens = self.tokens[at].low, self.tokens
        if word == "all" and at + 1 == len(tokens) and self.start is None and not self.phrases:
            self.phrases.append(Phrase(self.prep, at, at + 1, EVERYTHING, every=word))
        elif word in en.DETERMINERS and not _stands_alone(tokens, at):
            if self.start is not None:
                self._end(at)
            if word in ("its", "her", "his", "their"):
                self.phrases.append(Phrase(self.prep, at, at + 1, word, pronoun=word, owner=True))
        else:
            return False
        return True

    def _is_pronoun(self, at: int) -> bool:
        word = self.tokens[at].low
        if word in en.PRONOUNS or word in en.PLACE_PRONOUNS or word == "both":
            self._flush(at)
            self._add(Phrase(self.prep, at, at + 1, word, pronoun=word))
        elif word in _ME or word in en.SUBJECTS:
            self._flush(at)
        else:
            return False
        return True


def _stands_alone(tokens: Sequence[Token], index: int) -> bool:
    """Tell if a word such as "that" is a pronoun ("open that") and no determiner ("open that door")."""
    following = tokens[index + 1].low if index + 1 < len(tokens) else ""
    return (tokens[index].low in en.PRONOUNS or tokens[index].low == "both") and (
        not following
        or following in en.PREPOSITIONS
        or following in ("and", ",", "again", "the", "a", "an", "some")
        or following in en.PARTICLES
    )


def _starts_infinitive(tokens: Sequence[Token], index: int, finder: EntityFinder) -> bool:
    if index >= len(tokens) or tokens[index].quoted:
        return False
    word = tokens[index].low
    if (word not in en.VERBS and word not in en.NOUNISH) or finder.find(tokens, index, index + 1):
        return False
    return index + 1 < len(tokens) and tokens[index + 1].low not in ("module", "room")


def _clausal(tokens: Sequence[Token], start: int, prep: str) -> Phrase:
    return Phrase(prep, start, len(tokens), " ".join(as_typed(tokens[start:])), clausal=True)


def _unfold_light_verb(
    tokens: Sequence[Token], verb: str, phrases: list[Phrase], body: int
) -> tuple[str, list[Phrase], int]:
    """Reads the action from the noun: "take a closer look at the door" says look."""
    first = phrases[0]
    article = any(token.low in ("a", "an", "some") for token in tokens[1 : first.start])
    noun = tokens[first.end - 1].low
    acts = noun in en.VERBS or noun in en.NOUNISH or noun in _ACTIONS_IN_NOUNS
    if first.prep or first.quoted or first.pronoun or first.mention or not article or not acts:
        return verb, phrases, body
    return _ACTIONS_IN_NOUNS.get(noun, noun), phrases[1:], first.end
