"""What a clause is made of: its verb, its noun phrases with their prepositions, its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from narratoria.narrator.english.clauses import Clause
from narratoria.narrator.english.dictation import TO_SOMEBODY
from narratoria.narrator.english.named_things import EntityFinder, Mention, is_being
from narratoria.narrator.english.numerals import Quantity, quantities
from narratoria.narrator.english.tokens import Token, join, tokenize
from narratoria.narrator.english.verbs import families
from narratoria.narrator.english.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    NOUNISH,
    PARTICLES,
    PLACE_PRONOUNS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    SUBJECTS,
    VERB_STEMS,
    VERBS,
    stem,
    word_set,
)

_LIGHT_VERBS: Final = word_set("take have give make do get run perform conduct pay has had took catch grab")
_PHRASAL: Final = word_set(
    "put turn switch pick take bring set shut throw pull lift open close get give sum tick mark call write "
    "look lay hand push note cut roll tear wake power pack fill crank dial blow toss stir drop check go"
)
GIVES: Final = word_set(
    "give prescribe feed send tell hand lend show offer pay bring pour serve sell teach pass buy inject administer"
)
EVERYTHING: Final = "everything"
_ME: Final = frozenset({"me", "us", "myself"})


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
    lead: Mention | None = (
        None  # the thing it opens with, where the rest may be another: "the cubs some milk"
    )


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
        """The clause as it is compared: what it quotes could be about anything."""
        return join(replace(token, quoted=False) for token in self.tokens)

    @property
    def masked(self) -> str:
        """The clause without its nouns: "unlock it with something". What is left is the deed."""
        words: list[str] = [self.verb] if self.body else []
        spans = {phrase.start: phrase for phrase in self.phrases}
        index = self.body
        while index < len(self.tokens):
            phrase = spans.get(index)
            if phrase is None:
                if self.tokens[index].low not in DETERMINERS:
                    words.append(self.tokens[index].low)
                index += 1
            else:
                if not phrase.joined:
                    words.append("something" if phrase.prep else "it")
                index = phrase.end
        return " ".join(words)


def read(clause: Clause, finder: EntityFinder) -> Reading:
    tokens = _with_means_last(clause.tokens, finder)
    verb, particle, index = _head(tokens, finder)
    asked = _asked_verb(tokens) if not verb else None
    phrases = _phrases(tokens, index, verb, finder, asked)
    if asked is not None:
        verb = tokens[asked].low
    body = index if verb and asked is None else 0
    if verb in _LIGHT_VERBS and phrases:
        verb, phrases, body = _unfold_light_verb(tokens, verb, phrases, body)
    if not particle and verb:
        particle = next((t.low for t in tokens[-1:] if t.low in PARTICLES and len(tokens) > 2), "")
    return Reading(
        tokens, verb, particle, phrases, quantities(tokens), [stem(token.low) for token in tokens], body
    )


def _with_means_last(tokens: tuple[Token, ...], finder: EntityFinder) -> tuple[Token, ...]:
    """ "use the key to open the gate" is to open the gate with the key."""
    if tokens[0].low != "use" or tokens[0].quoted:
        return tokens
    to = next((at for at in range(2, len(tokens)) if tokens[at].low == "to"), 0)
    if not to or not _starts_infinitive(tokens, to + 1, finder):
        return tokens
    return (*tokens[to + 1 :], Token("with", "with"), *tokens[1:to])


def _head(tokens: Sequence[Token], finder: EntityFinder) -> tuple[str, str, int]:
    """The verb, its particle, and where the rest begins; no verb in questions and statements."""
    at = 0
    while at < len(tokens) and tokens[at].low in FILLERS and not tokens[at].quoted and len(tokens) > at + 1:
        at += 1
    first = tokens[at].low
    known = first in VERBS or first in NOUNISH or first.endswith("ing") or stem(first) in VERB_STEMS
    known = known or bool(families(first))
    if tokens[at].quoted or not first[0].isalpha() or first in QUESTION_WORDS or first in SUBJECTS:
        return "", "", at
    if (
        (first in AUXILIARIES and first not in ("do", "have"))
        or first in DETERMINERS
        or first in PREPOSITIONS
    ):
        return "", "", at
    if not known and len(tokens) > at + 1 and not _stands_before_a_name(tokens, at, finder):
        following = tokens[at + 1].low
        if following not in DETERMINERS and following not in PREPOSITIONS and following not in PRONOUNS:
            return "", "", at
    rest = at + 1
    if rest < len(tokens) and tokens[rest].low in PARTICLES and not tokens[rest].quoted:
        particle = tokens[rest].low
        if particle not in PREPOSITIONS or first in _PHRASAL or rest + 1 == len(tokens):
            return first, particle, rest + 1
    return first, "", rest


def _stands_before_a_name(tokens: Sequence[Token], at: int, finder: EntityFinder) -> bool:
    """ "wreck Bolt": a word that names nothing, right before a thing by its whole name, is what is done to it."""
    mention = finder.find(tokens, at + 1, at + 2)
    known = mention is not None and (mention.strength >= 1.0 or tokens[at + 1].text[:1].isupper())
    if mention is None or not known or finder.find(tokens, at, at + 1):
        return False
    return stem(tokens[at].low) not in mention.entity.holders


def _asked_verb(tokens: Sequence[Token]) -> int | None:
    """Where the verb of a question stands: "what can I *see* from here", "where do the exits *lead*"."""
    words = [token.low for token in tokens]
    if words[0] not in QUESTION_WORDS and words[0] not in AUXILIARIES:
        return None
    for index in range(1, len(words)):
        follows = words[index - 1] in SUBJECTS or "do" in words[:index] or "does" in words[:index]
        free = words[index - 1] not in DETERMINERS and not tokens[index].quoted
        if follows and free and (words[index] in VERBS or words[index] in ("know", "match")):
            return index
    return None


def _phrases(
    tokens: Sequence[Token], index: int, verb: str, finder: EntityFinder, asked: int | None
) -> list[Phrase]:
    phrases: list[Phrase] = []
    prep, joined = "", False
    start: int | None = None

    def flush(end: int) -> None:
        nonlocal start, joined
        if start is not None and end > start:
            phrases.extend(
                _finish(
                    tokens,
                    start,
                    end,
                    prep,
                    joined,
                    finder,
                    asks=not verb,
                    gives=verb in GIVES | TO_SOMEBODY,
                )
            )
        start, joined = None, False

    while index < len(tokens):
        token = tokens[index]
        word = token.low
        if index == asked:
            flush(index)
            prep = ""
        elif token.quoted:
            flush(index)
            about = finder.find(spoken := tokenize(token.text), 0, len(spoken))
            phrases.append(
                Phrase(prep, index, index + 1, token.text, quoted=True, joined=joined, about=about)
            )
            prep, joined = "", False
        elif word in QUESTION_WORDS and index > 0 and verb:
            flush(index)
            phrases.append(_clausal(tokens, index, prep or "about"))
            return phrases
        elif word == "to" and _starts_infinitive(tokens, index + 1, finder):
            flush(index)
            phrases.append(_clausal(tokens, index + 1, "to"))
            return phrases
        elif word in PREPOSITIONS:
            flush(index)
            prep = word
        elif word in ("and", ",", "or", "&", "plus", "but"):
            had = start is not None or (phrases and phrases[-1].end == index)
            flush(index)
            joined = bool(had)
            prep = phrases[-1].prep if phrases and joined else prep
        elif word in AUXILIARIES or word in QUESTION_WORDS or not word[0].isalnum():
            flush(index)
            prep = ""
            if verb in TO_SOMEBODY and word in AUXILIARIES and _follows_another(phrases, index):
                # "tell the colonel *runway 27 is closed*"
                phrases[-1] = replace(
                    _clausal(tokens, phrases[-1].start, ""), quoted=True, about=phrases[-1].mention
                )
                return phrases
        elif word == "all" and index + 1 == len(tokens) and start is None and not phrases:
            phrases.append(Phrase(prep, index, index + 1, EVERYTHING, every=word))
        elif word == "both" and _stands_alone(tokens, index) and index and tokens[index - 1].low in PRONOUNS:
            pass  # "them both"
        elif word in DETERMINERS and not _stands_alone(tokens, index):
            if start is not None:
                flush(index)
                prep = ""
            if word in ("its", "her", "his", "their"):
                phrases.append(Phrase(prep, index, index + 1, word, pronoun=word, owner=True))
        elif word in PRONOUNS or word in PLACE_PRONOUNS or word == "both":
            flush(index)
            phrases.append(Phrase(prep, index, index + 1, word, pronoun=word, joined=joined))
            prep, joined = "", False
        elif word in _ME or word in SUBJECTS:
            flush(index)
        elif start is None:
            start = index
        index += 1
    flush(len(tokens))
    return phrases


def _stands_alone(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word such as "that" is a pronoun ("open that") and no determiner ("open that door")."""
    following = tokens[index + 1].low if index + 1 < len(tokens) else ""
    return (tokens[index].low in PRONOUNS or tokens[index].low == "both") and (
        not following
        or following in PREPOSITIONS
        or following in ("and", ",", "again", "the", "a", "an", "some")
        or following in PARTICLES
    )


def _follows_another(phrases: Sequence[Phrase], index: int) -> bool:
    """Whether a thing named right behind somebody ends at `index`."""
    return (
        len(phrases) > 1
        and phrases[-1].end == index
        and phrases[-2].end == phrases[-1].start
        and not (phrases[-1].prep or phrases[-2].prep)
    )


def _starts_infinitive(tokens: Sequence[Token], index: int, finder: EntityFinder) -> bool:
    if index >= len(tokens) or tokens[index].quoted:
        return False
    word = tokens[index].low
    if (word not in VERBS and word not in NOUNISH) or finder.find(tokens, index, index + 1):
        return False
    return index + 1 < len(tokens) and tokens[index + 1].low not in ("module", "room")


def _clausal(tokens: Sequence[Token], start: int, prep: str) -> Phrase:
    return Phrase(prep, start, len(tokens), _written(tokens, start, len(tokens)), clausal=True)


def _finish(
    tokens: Sequence[Token],
    start: int,
    end: int,
    prep: str,
    joined: bool,
    finder: EntityFinder,
    *,
    asks: bool,
    gives: bool = False,
) -> list[Phrase]:
    while start < end and tokens[start].low in FILLERS:
        start += 1
    while end > start and (tokens[end - 1].low in FILLERS or tokens[end - 1].low in PARTICLES):
        end -= 1
    if start == end:
        return []
    mention = finder.find(tokens, start, end)
    every = _quantifier(tokens, start)
    if not mention and end - start > 1 and _is_name_before_a_noun(tokens, start):  # "Priya's card"
        mention = finder.find(tokens, start, start + 1)
    if asks and not mention and end - start > 1 and (mention := finder.find(tokens, start, end - 1)):
        end -= 1  # "does the blood match …": in a question the verb follows its subject
    if mention and mention.end < end - 1 and (extra := finder.find(tokens, mention.end, end)):
        # "send Lindqvist flowers", "tell Mara hermit secrets": two things side by side are two phrases.
        first = Phrase(prep, start, mention.end, _written(tokens, start, mention.end), mention, joined=joined)
        return [first, Phrase("", extra.start, end, _written(tokens, extra.start, end), extra)]
    if (
        gives
        and mention
        and mention.start > start
        and (whom := _opens_with(tokens, start, mention.start, finder))
    ):
        first = Phrase(prep, start, whom.end, _written(tokens, start, whom.end), whom, joined=joined)
        return [first, Phrase("", mention.start, end, _written(tokens, mention.start, end), mention)]
    if tokens[start].low == EVERYTHING and end > start + 1 and gives:  # "feed everybody krill"
        whole = Phrase(prep, start, start + 1, EVERYTHING, joined=joined, every=every)
        return [whole, Phrase("", start + 1, end, _written(tokens, start + 1, end), mention)]
    lead = None
    if gives and not mention and not prep:
        lead = next(
            (one for cut in range(end - 1, start, -1) if (one := _opens_with(tokens, start, cut, finder))),
            None,
        )
    named = tokens[start].text[:1].isupper()
    if gives and mention and not prep and not every and _names_whom(mention, start, end, named):
        # "prescribe Rex meloxicam"
        told = Phrase(prep, start, mention.end, _written(tokens, start, mention.end), mention, joined=joined)
        return [told, Phrase("", mention.end, end, _written(tokens, mention.end, end))]
    text = _written(tokens, start, end)
    return [Phrase(prep, start, end, text, mention, joined=joined, every=every, lead=lead)]


def _is_name_before_a_noun(tokens: Sequence[Token], start: int) -> bool:
    return tokens[start].text[:1].isupper() and tokens[start + 1].text[:1].islower()


def _opens_with(tokens: Sequence[Token], start: int, end: int, finder: EntityFinder) -> Mention | None:
    """The thing that `tokens[start:end]` name to the last word."""
    mention = finder.find(tokens, start, end)
    return mention if mention and mention.end == end else None


def _names_whom(mention: Mention, start: int, end: int, named: bool) -> bool:
    whole = mention.start == start and mention.end < end and mention.strength >= 1.0
    return whole and (named or bool(is_being(mention.entity)))


def _quantifier(tokens: Sequence[Token], start: int) -> str:
    """ "both pans", "all the invoices", "each of the doors"."""
    if tokens[start].low == EVERYTHING:
        return "all"
    at = start - 1
    while at >= 0 and tokens[at].low in ("the", "my", "our", "your", "of", "these", "those"):
        at -= 1
    return tokens[at].low if at >= 0 and tokens[at].low in ("both", "all", "every", "each") else ""


def _written(tokens: Sequence[Token], start: int, end: int) -> str:
    """The player's own spelling and capitals, except where a typo was mended."""
    words = [t.text if t.quoted or t.text.casefold() == t.low else t.low for t in tokens[start:end]]
    return " ".join(words)


def _unfold_light_verb(
    tokens: Sequence[Token], verb: str, phrases: list[Phrase], body: int
) -> tuple[str, list[Phrase], int]:
    """The deed is in the noun: "take a closer look at the door" says look."""
    first = phrases[0]
    article = any(token.low in ("a", "an", "some") for token in tokens[1 : first.start])
    noun = tokens[first.end - 1].low
    deed = (
        noun in VERBS or noun in NOUNISH or noun in ("word", "nap", "chat", "sweep", "peek", "conversation")
    )
    if first.prep or first.quoted or first.pronoun or first.mention or not article or not deed:
        return verb, phrases, body
    return _DEEDS_IN_NOUNS.get(noun, noun), phrases[1:], first.end


_DEEDS_IN_NOUNS: Final = {
    "word": "talk",
    "chat": "talk",
    "conversation": "talk",
    "peek": "look",
    "nap": "sleep",
}
