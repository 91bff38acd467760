"""Phrases that players may type, made from the patterns of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.rules.patterns import REST, Choice, Group, Parts, Pattern

_WALKS: Final = 6  # tries per phrase wanted: many walks end in a phrase that is known already
_LONGEST: Final = 40
_NO_ARTICLE: Final = en.STOPWORDS | en.PARTICLES | words("story_rules.without_article")


def phrases(patterns: Sequence[Pattern], limit: int) -> list[str]:
    """At most `limit` phrases that fit the patterns, a fair share of each, plain ones first.

    A group that captures anything stands in them as `{name}`.
    """
    share = max(1, limit // max(1, len(patterns)))
    found: dict[str, None] = {}
    for pattern in patterns:
        own: dict[str, None] = {}
        for phrase in _walks(pattern.parts, share * _WALKS):
            if len(own) >= share or len(found) + len(own) >= limit:
                break
            if phrase and phrase not in found:
                own.setdefault(phrase)
        found.update(own)
    return list(found)


def _walks(parts: Parts, count: int) -> Iterator[str]:
    """Ways through a pattern. At each fork the way least taken is next, so every word gets its turn."""
    taken: Counter[object] = Counter()
    for _ in range(count):
        yield " ".join(_walk(parts, taken)[:_LONGEST])


def _walk(parts: Parts, taken: Counter[object]) -> list[str]:
    words: list[str] = []
    for part in parts:
        if isinstance(part, str):
            words += [part] if part != REST else []
        elif isinstance(part, Group) and not part.ways:
            words.append(f"{{{part.name}}}")
        elif part.ways:
            if isinstance(part, Choice) and part.optional:  # now and then it is said
                said = taken[part, True] * 2 + 1 < taken[part, False]
                taken[part, said] += 1
                if not said:
                    continue
            way = min(part.ways, key=lambda way: taken[id(way)])
            taken[id(way)] += 1
            words += _walk(way, taken)
    return words


def readable(phrase: str) -> str:
    """A phrase as an offer to the player: "wind clockwork" becomes "Wind the clockwork"."""
    said: list[str] = []
    before = ""
    for index, word in enumerate(phrase.split()):
        if (index == 1 or before in en.PREPOSITIONS) and word not in _NO_ARTICLE:
            said += ["to", "the"] if before in words("story_rules.moving") else ["the"]
        said.append(word)
        before = word
    text = " ".join(said)
    return text[:1].upper() + text[1:]
