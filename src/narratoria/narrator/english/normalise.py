"""The normaliser: one kind of apostrophe, none left out, nothing invisible, contractions spelled out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from narratoria.narrator.english.lexicon import entry, pattern

# Keyboards and phones have many apostrophes, and players leave them out: "dont" must not be read as "do".
_APOSTROPHE: Final = re.compile(r"(?<=\w)[’‘‛`´ʹʻʼʽˈ′＇](?=\w)")
_LEFT_OUT: Final = pattern("rewriting.left_out")
QUOTES: Final = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']+)\'(?!\w)')
_AFTER_A_WORD: Final = re.compile(r"\w[^\w.!?]*$")


def visible(text: str) -> str:
    """The text in composed letters, without invisible marks inside words."""
    return unicodedata.normalize("NFC", "".join(c for c in text if unicodedata.category(c) != "Cf"))


def with_apostrophes(text: str) -> str:
    """The text with one kind of apostrophe, and with those that were left out: "dont" is "don't"."""
    return _LEFT_OUT.sub(lambda match: match[0] + "'", _APOSTROPHE.sub("'", text))


def spelled_out(text: str) -> str:
    """The text without contractions, apostrophes first put in: "don't" and "dont" are "do not"."""
    return _rewriter("contractions")(with_apostrophes(text))


def quotes_said(text: str) -> str:
    """The text with each quotation in one piece, and "say" before one that stands alone: its words are no order."""

    def said(match: re.Match[str]) -> str:
        words = "_".join(
            re.findall(r"[\w'’]+", match[0])
        )  # no pattern of a clause parts it, and a rule reads its words
        return f" {words} " if _AFTER_A_WORD.search(text[: match.start()]) else f" say {words}, "

    return QUOTES.sub(said, text)


def word_list(text: str) -> list[str]:
    """The words of a text in lower case, contractions spelled out."""
    return spelled_out(text).casefold().split()


def in_plain_verbs(text: str) -> str:
    """The text with fixed expressions as the verb they stand for: "get rid of" is "discard"."""
    return _rewriter("expressions")(text)


@cache
def _rewriter(name: str) -> Callable[[str], str]:
    """Applies the patterns of an entry of the lexicon, one after the other."""
    rules: Iterable[tuple[str, str]] = entry(f"rewriting.{name}")
    compiled = [(re.compile(expression, re.IGNORECASE), plain) for expression, plain in rules]

    def rewrite(text: str) -> str:
        for expression, plain in compiled:
            text = expression.sub(plain, text)
        return text

    return rewrite
