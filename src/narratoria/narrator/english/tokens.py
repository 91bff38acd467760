"""A prompt as tokens: words, numbers as they are written, identifiers, quotations; typos mended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.normalise import QUOTES, in_plain_verbs, spelled_out, with_apostrophes
from narratoria.narrator.english.verbs import families


@dataclass(frozen=True, slots=True)
class Token:
    text: str  # as written
    low: str  # lower case, typos mended
    quoted: bool = False  # a whole quotation is one token


def join(tokens: Iterable[Token]) -> str:
    return closed_up(token.text if token.quoted else token.low for token in tokens)


def closed_up(words: Iterable[str]) -> str:
    """The words as a text, marks right behind them."""
    return re.sub(r" (?=[,.!?;:%])", "", " ".join(words))


def as_typed(tokens: Iterable[Token]) -> list[str]:
    """The words in the player's own spelling and capitals, except where a typo was mended."""
    return [t.text if t.quoted or t.text.casefold() == t.low else t.low for t in tokens]


_TOKEN: Final = re.compile(
    r"""
      \x00\d+\x00                                      # a quotation, put aside
    | (?<!\d) \d [dD] \b                               # 3D
    | (?<!\d) [^\W\d_]+ [-_]? \d \w* (?:[-_]\w+)*      # an identifier: INV-204, B12
    | (?:(?<![\w)])[-−])? \d{1,3} (?:[ \u00a0\u202f]\d{3})+ (?:[.,]\d+)? (?!\d)   # 1 000
    | (?:(?<![\w)])[-−])? \d+ (?:[.,']\d+)*            # -50, 1,250.75: which it is, `numerals` decides
    | [^\W\d_]+ (?:[-'_][^\W\d_]+)*
    | [^\w\s]
    """,
    re.VERBOSE,
)


# A line ends a sentence, unless it or the next one goes on. The mark of an item in a list says nothing.
_LINE_END: Final = re.compile(
    r"(?<![,:&])\s*\n\s*(?:[-*•–—]\s|\(?\d{1,2}[.)]\s)?(?!(?:and|or|then)\b)", re.IGNORECASE
)


def tokenize(prompt: str, mend: Callable[[str], str] = lambda word: word) -> list[Token]:
    """The tokens of a prompt; `mend` maps a lower-case word to what it was meant to be."""
    quotations: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotations.append(next(group for group in match.groups() if group is not None))
        return f" \x00{len(quotations) - 1}\x00 "

    text = QUOTES.sub(hide, with_apostrophes(prompt.replace("\x00", " ")))
    text = in_plain_verbs(spelled_out(_LINE_END.sub(". ", text)))
    tokens: list[Token] = []
    for raw in _TOKEN.findall(text):
        if raw[0] == "\x00":
            tokens.append(Token(quotations[int(raw[1:-1])], "something", quoted=True))
        else:
            low = raw.casefold()
            tokens.append(Token(raw, mend(low) if len(low) > 2 and low.isalpha() else low))
    return tokens


def mender(story_words: Iterable[str], known: Callable[[str], bool]) -> Callable[[str], str]:
    """Mends typos: a word that is no English word and lies near one of the story's, or near a common verb."""
    story = frozenset(word for word in story_words if len(word) > 2)
    stems = frozenset(map(en.stem, story))
    verbs = en.VERBS | en.NOUNISH

    def mend(word: str) -> str:
        if (
            word in story
            or families(word)
            or en.stem(word) in stems
            or word in verbs
            or word in en.STOPWORDS
            or word in en.NUMBERS
            or any(known(form) for form in _forms(word))
        ):
            return word
        plain = en.nearest(word, verbs, 1) if len(word) > 4 else None
        return en.nearest(word, story) or plain or word

    return mend


def _forms(word: str) -> Iterator[str]:
    """A word and what it may be an inflected form of: "kilos" is as good a word as "kilo"."""
    yield word
    for ending in ("s", "es", "ed", "d", "ing", "er", "ly"):
        if word.endswith(ending) and len(word) - len(ending) > 3:
            yield word[: -len(ending)]
