"""A prompt as tokens: words, numbers as they are written, identifiers, quotations; typos mended."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from narratoria.narrator.english.normalise import in_plain_verbs, spelled_out, with_apostrophes
from narratoria.narrator.english.verbs import families
from narratoria.narrator.english.words import (
    DETERMINERS,
    NOUNISH,
    NUMBERS,
    PARTICLES,
    PREPOSITIONS,
    STOPWORDS,
    VERBS,
    nearest,
    stem,
    word_set,
)


@dataclass(frozen=True, slots=True)
class Token:
    text: str  # as written
    low: str  # lower case, typos mended
    quoted: bool = False  # a whole quotation is one token


def join(tokens: Iterable[Token]) -> str:
    text = " ".join(token.text if token.quoted else token.low for token in tokens)
    return re.sub(r" (?=[,.!?;:])", "", text)


_QUOTES: Final = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']+)\'(?!\w)')
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


def tokenize(prompt: str, mend: Callable[[str], str] = lambda word: word) -> list[Token]:
    """The tokens of a prompt; `mend` maps a lower-case word to what it was meant to be."""
    quotations: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotations.append(next(group for group in match.groups() if group is not None))
        return f" \x00{len(quotations) - 1}\x00 "

    text = _QUOTES.sub(hide, with_apostrophes(prompt.replace("\x00", " ")))
    text = in_plain_verbs(spelled_out(_lines_as_sentences(text)))
    tokens: list[Token] = []
    for raw in _TOKEN.findall(text):
        if raw[0] == "\x00":
            tokens.append(Token(quotations[int(raw[1:-1])], "something", quoted=True))
        else:
            low = raw.casefold()
            tokens.append(Token(raw, mend(low) if len(low) > 2 and low.isalpha() else low))
    return tokens


def _lines_as_sentences(text: str) -> str:
    """A line ends a sentence, unless it or the next one shows that it goes on: "feed Rex\nand brush him"."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return text
    whole = _BULLET.sub("", lines[0])
    for line in lines[1:]:
        words, listed = whole.casefold().split(), _BULLET.match(line) is not None
        goes_on = words[-1:] and (words[-1] in _GOES_ON or line.casefold().split()[0] in _GOES_ON)
        ended = whole[-1:] in ".!?;" or (not listed and (goes_on or whole[-1:] in ",:&-–—"))
        whole += (" " if ended else ". ") + _BULLET.sub("", line)
    return whole


_BULLET: Final = re.compile(r"^(?:[-*•–—]|\(?\d{1,2}[.)])\s+")
_GOES_ON: Final = (PREPOSITIONS - PARTICLES) | word_set(
    "the a an my your our its their every and or but nor then"
)


def mender(story_words: Iterable[str], known: Callable[[str], bool]) -> Callable[[str], str]:
    """Mends typos: a word that is no English word and lies near one of the story's, or near a common verb."""
    story = frozenset(word for word in story_words if len(word) > 2)
    stems = frozenset(map(stem, story))
    verbs = VERBS | NOUNISH
    small = frozenset(word for word in DETERMINERS | PREPOSITIONS | NUMBERS.keys() if len(word) > 2)

    def mend(word: str) -> str:
        if (
            word in story
            or families(word)
            or stem(word) in stems
            or word in verbs
            or word in STOPWORDS
            or word in NUMBERS
            or any(known(form) for form in _forms(word))
        ):
            return word
        plain = (
            nearest(word, small, 1) or nearest(word, verbs, 1)
            if len(word) > 4 or _swapped(word, verbs)
            else None
        )
        return nearest(word, story) or plain or word

    return mend


def _swapped(word: str, words: Collection[str]) -> bool:
    """ "opne": two letters of a known word have changed places."""
    return any(word[:at] + word[at + 1] + word[at] + word[at + 2 :] in words for at in range(len(word) - 1))


def _forms(word: str) -> Iterator[str]:
    """A word and what it may be an inflected form of: "kilos" is as good a word as "kilo"."""
    yield word
    for ending in ("s", "es", "ed", "d", "ing", "er", "ly"):
        if word.endswith(ending) and len(word) - len(ending) > 3:
            yield word[: -len(ending)]
