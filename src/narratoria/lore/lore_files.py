"""The lore files of a story: paragraphs that are recalled by meaning, or entries that fire.

A lore file is Markdown. Plain paragraphs are recalled when they are near in meaning to what is going on. With
TOML between `+++` lines at its top, a file fires on keywords and on conditions over state instead:

    +++
    keywords = ["lighthouse", "lamp room"]
    when = { lamp.lit = false }
    +++
    The lamp has been dark since the keeper's daughter drowned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from narratoria.lore.entries import LoreEntry, front_matter

Kind: TypeAlias = Literal["turn", "lore", "character"]
CountTokens: TypeAlias = Callable[[str], int]

MOST_TOKENS: Final = 510  # that a memory may have: the embedder reads 512, two of them its own
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+")


@dataclass(frozen=True, slots=True)
class Memory:
    text: str
    kind: Kind = "lore"
    source: str = ""  # the file, the character or the turn it comes from


def read_lore(name: str, text: str, count_tokens: CountTokens) -> tuple[list[Memory], list[LoreEntry]]:
    """The paragraphs of one lore file: memories, or entries where its front matter says when they fire."""
    model, rest = front_matter(name, text)
    parts = split_lore(rest, count_tokens)
    if model is None:
        return [Memory(part, "lore", name) for part in parts], []
    return [], [replace(model, text=part) for part in parts]


def split_lore(text: str, count_tokens: CountTokens, limit: int = MOST_TOKENS) -> list[str]:
    """Paragraphs of at most `limit` tokens; a heading goes with the paragraph under it."""
    parts: list[str] = []
    heading = ""
    for paragraph in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        paragraph = paragraph.strip()
        if not paragraph:
            continue
        if paragraph.startswith("#") and "\n" not in paragraph:
            heading = paragraph.lstrip("# ").strip()
            continue
        if paragraph.startswith("#"):
            first, _, paragraph = paragraph.partition("\n")
            heading = first.lstrip("# ").strip()
        parts.extend(_fit(f"{heading}: {paragraph}" if heading else paragraph, count_tokens, limit))
    return parts


def _fit(paragraph: str, count_tokens: CountTokens, limit: int) -> Iterator[str]:
    if count_tokens(paragraph) <= limit:
        yield paragraph
        return
    piece = ""
    for sentence in _short_sentences(paragraph, count_tokens, limit):
        longer = f"{piece} {sentence}".strip()
        if piece and count_tokens(longer) > limit:
            yield piece
            longer = sentence
        piece = longer
    if piece:
        yield piece


def _short_sentences(paragraph: str, count_tokens: CountTokens, limit: int) -> Iterator[str]:
    """Sentences; one that is too long itself is halved until its parts fit."""
    waiting = list(reversed(_SENTENCE_END.split(paragraph)))
    while waiting:
        sentence = waiting.pop()
        if len(sentence) > 1 and count_tokens(sentence) > limit:
            middle = sentence.rfind(" ", 0, len(sentence) // 2 + 1)
            middle = middle if middle > 0 else len(sentence) // 2
            waiting += [sentence[middle:].strip(), sentence[:middle].strip()]
        elif sentence:
            yield sentence
