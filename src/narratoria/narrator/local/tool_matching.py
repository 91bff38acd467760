"""The search for the tool a clause means: by likeness, words in common, and how well its slots are filled."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from narratoria.narrator.embedding.minilm import CachedEmbedder, Embedder
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.narrator.english.mood import Mood
from narratoria.narrator.english.opposites import undoes
from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.verbs import says_enough
from narratoria.narrator.english.words import HARMFUL, split_name, stem
from narratoria.narrator.local.clause_features import (
    grounds,
    kinship,
    misplaced_object,
    surface,
    unexplained_words,
)
from narratoria.narrator.local.filled_slots import Filling, Recent
from narratoria.narrator.local.slots import fill
from narratoria.narrator.local.tool_profiles import ToolProfile, profile
from narratoria.narrator.protocol import ToolCard

# What speaks for a tool, and how much. Fitted on evals/development.jsonl by evals/fit.py, rounded; `rival`, `akin`,
# `foreign` and `told` by hand, on both development files. The same for every catalogue.
WEIGHTS: Final[Mapping[str, float]] = {
    "meant": 8.8,  # likeness to what the tool is for, as tuned on requests and the tools they mean
    "shown": 1.7,  # the same, or to the nearest of its examples
    "likeness": 5.8,  # of the clause to the nearest sentence of the tool
    "verb": 1.5,  # the clause's verb is the tool's
    "nouns": 0.8,  # nouns in common with the tool's name and description
    "required": 4.2,  # how firmly the required slots are filled
    "missing": 1.3,  # required slots that nothing fills
    "optional": 2.4,  # optional slots filled from known words
    "plain": 1.0,  # it is the tool's verb, everything required is known, and no word is left over
    "unexplained": -2.0,  # share of the clause's words that neither the tool nor a slot accounts for
    "rival": -0.3,  # another tool has the clause's verb, and this one has not
    "misplaced": -1.5,  # it is about a thing that no slot takes and the tool does not speak of
    "akin": 1.4,  # the clause's verb is of a family with one of the tool's
    "foreign": -1.5,  # it is of other families than all of the tool's
    "told": 2.0,  # the clause asks how things are, and the tool tells: as far as its words are explained
}
FEATURES: Final = tuple(WEIGHTS)
NONE: Final = 8.35  # what a tool must score for any to be meant
_LEFT_OVER: Final = 0.25
_MAX_CATALOGUES: Final = 16
_MAX_NAMES: Final = 4_000
# A tool whose action is not named is called without asking back if it is ahead of every other that could be called,
# far ahead or strong, and accounts for most words. Fitted by hand on the development files.
_STRONG: Final = 2.0  # over the bar
_AHEAD: Final = 0.8
_FAR_AHEAD: Final = 1.7
_MOST_LEFT_OVER: Final = 0.32


@dataclass(frozen=True, slots=True)
class Sense:
    """The meaning of texts: vectors of the plain model by text, and of the tuned one for whole clauses."""

    plain: Mapping[str, Vectors]
    tuned: Mapping[str, Vectors]


@dataclass(frozen=True, slots=True)
class Candidate:
    tool: ToolProfile
    filling: Filling
    features: Mapping[str, float]
    score: float
    opposite: bool  # the clause's verb undoes what the tool does, or does harm where the tool does none
    plain_action: bool = True  # it does say what is to be done, as "get" and "put" do not
    grounded: bool = True  # the clause says something that may mean a tool, as "ok" and "1" do not

    @property
    def names_the_action(self) -> bool:
        """Tell if the clause's verb is one of the tool's, or of a family with one, and says enough by itself."""
        named = self.features["verb"] == 1.0 or self.features["akin"]
        return bool(named) and self.plain_action

    @property
    def is_wanting(self) -> bool:
        """Tell if the tool cannot be called with what the clause says."""
        filling = self.filling
        return bool(filling.missing or filling.unfit or not self.tool.accepts(filling.input))

    @property
    def leaves_words_over(self) -> bool:
        return self.features["unexplained"] > _LEFT_OVER

    @property
    def own_score(self) -> float:
        """The score without the claims of rivals: these say which tool is meant, not whether any is."""
        return self.score - WEIGHTS["rival"] * self.features["rival"]


@dataclass(slots=True)
class ToolIndex:
    """A catalogue, ready to be searched."""

    tools: list[ToolProfile]
    sentences: Vectors
    sentence_rows: list[slice]
    purposes: Vectors  # tuned: a row per tool, then one per example
    example_rows: list[slice]
    known: dict[str, Vectors] = field(default_factory=dict)

    @classmethod
    def build(cls, cards: Iterable[ToolCard], embedder: Embedder, tuned: Embedder) -> ToolIndex:
        tools = [profile(card) for card in cards]
        examples, example_rows = _flatten([tool.sentences[2:] for tool in tools], len(tools))
        sentences, sentence_rows = _flatten([tool.sentences for tool in tools])
        extra = sorted({text for tool in tools for text in _slot_texts(tool)})
        vectors = embedder.embed([*sentences, *extra])
        return cls(
            tools,
            vectors[: len(sentences)],
            sentence_rows,
            tuned.embed([*(tool.purpose for tool in tools), *examples]),
            example_rows,
            dict(zip(extra, vectors[len(sentences) :], strict=True)),
        )

    def words(self) -> set[str]:
        """The words of the catalogue, for mending typos."""
        texts = [text for tool in self.tools for text in tool.sentences]
        texts += [slot.text for tool in self.tools for slot in tool.slots]
        choices = (slot.choices for tool in self.tools for slot in tool.slots if slot.kind == "choice")
        values = [str(value) for several in choices for value in several]
        return {word for text in (*texts, *values) for word in split_name(text) if len(word) > 2}

    def rank(
        self, reading: Reading, recent: Recent, sense: Sense, mood: Mood = Mood.ORDER
    ) -> list[Candidate]:
        """Every usable tool with its filled slots, best first."""
        look = _Look(self, reading, sense, mood)
        usable = [(at, tool) for at, tool in enumerate(self.tools) if tool.usable]
        found = [look.candidate(at, tool, fill(tool, reading, recent, look.alike)) for at, tool in usable]
        return sorted(found, key=lambda candidate: candidate.score, reverse=True)

    def nearest(self, prompt: Vectors, count: int) -> list[ToolProfile]:
        """The tools nearest in meaning to a prompt."""
        likes = (self.sentences @ prompt) if len(self.sentences) else np.zeros(0, dtype=np.float32)
        order = sorted(range(len(self.tools)), key=lambda i: -float(likes[self.sentence_rows[i]].max()))
        return [self.tools[i] for i in order[:count]]


class _Look:
    """One clause, held against every tool of a catalogue."""

    def __init__(self, index: ToolIndex, reading: Reading, sense: Sense, mood: Mood) -> None:
        self.index, self.reading, self.sense, self.mood = index, reading, sense, mood
        self.purposes = index.purposes @ sense.tuned[reading.text]
        self.sentences = index.sentences @ sense.plain[reading.text] if len(index.sentences) else None
        self.verbs = {verb for tool in index.tools if tool.usable for verb in tool.verbs}
        self.said = (stem(reading.verb), reading.particle)
        others = (tool.phrasal for tool in index.tools if tool.usable)
        self.owned = bool(reading.particle) and any(self.said in phrasal for phrasal in others)

    def alike(self, first: str, second: str) -> float:
        left, right = self.index.known.get(first), self.sense.plain.get(second)
        return 0.0 if left is None or right is None else float(left @ right)

    def candidate(self, at: int, tool: ToolProfile, filling: Filling) -> Candidate:
        reading = self.reading
        features = self._features(at, tool, filling)
        said = [token.low for token in reading.tokens]
        harms = self.said[0] in HARMFUL - tool.words - tool.actions and not features["akin"]
        opposite = bool(reading.verb) and (harms or undoes(said, tool.actions))
        plain = says_enough(reading.verb, reading.particle)
        near = features["meant"] + features["likeness"]
        grounded = grounds(tool, reading, filling, near)
        score = sum(WEIGHTS[name] * value for name, value in features.items())
        return Candidate(tool, filling, features, score, opposite, plain, grounded)

    def _features(self, at: int, tool: ToolProfile, filling: Filling) -> Mapping[str, float]:
        reading, rows, meant = self.reading, self.index.sentence_rows[at], float(self.purposes[at])
        chosen = (self.alike(text, reading.text) for text in _chosen_texts(tool, filling))
        known = {
            phrase.text: float((self.index.sentences[rows] @ self.sense.plain[phrase.text]).max())
            for phrase in reading.phrases
            if phrase.text in self.sense.plain
        }
        unexplained = unexplained_words(tool, reading, filling, known)
        misplaced = misplaced_object(tool, reading, filling, known)
        asked = self.mood is Mood.QUESTION
        kin = not asked and (not self.owned or self.said in tool.phrasal)
        values = (
            meant,
            max(map(float, [meant, *self.purposes[self.index.example_rows[at]]])),
            max(float(self.sentences[rows].max()) if self.sentences is not None else 0.0, *chosen, 0.0),
            *surface(tool, reading, filling, unexplained, misplaced, self.verbs),
            *(kinship(tool, reading, filling) if kin else (0.0, 0.0)),
            (1.0 - unexplained) * (asked and self.mood in tool.answers),
        )
        return dict(zip(FEATURES, values, strict=True))


def is_certain(best: Candidate, ranked: Sequence[Candidate], bar: float) -> bool:
    """Tell if `best` of these may be called without asking back: its action is named, or nothing speaks against it."""
    if best.names_the_action:
        return True
    others = (one for one in ranked if one.tool is not best.tool and one.grounded)
    rivals = (one for one in others if not one.is_wanting and not one.opposite)
    lead = best.score - max((one.score for one in rivals), default=-math.inf)
    strong = best.own_score >= bar + _STRONG or lead >= _FAR_AHEAD
    return strong and lead >= _AHEAD and best.features["unexplained"] <= _MOST_LEFT_OVER


def _chosen_texts(tool: ToolProfile, filling: Filling) -> list[str]:
    name = " ".join(split_name(tool.card.name))
    return [
        f"{name} {filling.input[slot.name]}"
        for slot in tool.slots
        if slot.kind == "choice" and filling.strength.get(slot.name, 0.0) > 0.3
    ]


def _slot_texts(tool: ToolProfile) -> list[str]:
    """The texts that slots are compared by: their own, and each choice in the tool's words."""
    name = " ".join(split_name(tool.card.name))
    texts = [slot.text for slot in tool.slots if slot.kind in ("text", "texts")]
    texts += [text for text, _ in tool.examples]
    return texts + [f"{name} {v}" for slot in tool.slots if slot.kind == "choice" for v in slot.choices]


def _flatten(groups: Sequence[Sequence[str]], offset: int = 0) -> tuple[list[str], list[slice]]:
    """All texts, and where each group stands among them, behind `offset` others."""
    texts: list[str] = []
    rows: list[slice] = []
    for group in groups:
        start = offset + len(texts)
        rows.append(slice(start, start + len(group)))
        texts.extend(group)
    return texts, rows


def fingerprint(cards: Sequence[ToolCard]) -> bytes:
    """Equal for equal catalogues, so that an index is built once."""
    digest = hashlib.blake2b(digest_size=16)
    for card in cards:
        digest.update(repr((card.name, card.description, card.parameters, card.examples)).encode())
    return digest.digest()


class Knowledge:
    """The memory from one prompt to the next: catalogues and vectors of names. It is bounded by forgetting."""

    def __init__(self, embedder: Embedder, threshold: float) -> None:
        self._embedder = embedder
        self._tuned = embedder.tuned()
        self.bar = NONE + threshold  # what a tool must score to be meant
        self._indexes: dict[bytes, ToolIndex] = {}
        self._names: dict[str, Vectors] = {}

    def index(self, tools: Sequence[ToolCard]) -> ToolIndex:
        key = fingerprint(tools)
        if key not in self._indexes:
            if len(self._indexes) >= _MAX_CATALOGUES:
                self._indexes.pop(next(iter(self._indexes)))
            self._indexes[key] = ToolIndex.build(tools, self._embedder, self._tuned)
        return self._indexes[key]

    def embed(self, texts: Sequence[str], *, tuned: bool = False) -> Vectors:
        embedder = self._tuned if tuned else self._embedder
        if isinstance(embedder, CachedEmbedder):
            return embedder.embed(texts, keep=False)
        return embedder.embed(texts)

    def embed_names(self, texts: Sequence[str]) -> Vectors:
        """The same for names of things, which recur from turn to turn."""
        fresh = [text for text in texts if text not in self._names]
        if fresh:
            if len(self._names) > _MAX_NAMES:
                self._names.clear()
                fresh = list(texts)
            self._names.update(zip(fresh, self.embed(fresh), strict=True))
        return np.stack([self._names[text] for text in texts])

    def knows_word(self, word: str) -> bool:
        return self._embedder.knows_word(word)
