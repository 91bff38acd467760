"""Which tool does a clause mean? Likeness of meaning, words in common, and how well its slots are filled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from narratoria.narrator.embedding import Embedder
from narratoria.narrator.families import families, says_enough
from narratoria.narrator.filling import Filling, Recent
from narratoria.narrator.mood import Mood, undoes
from narratoria.narrator.phrases import Reading
from narratoria.narrator.profiles import ToolProfile, profile
from narratoria.narrator.protocol import ToolCard
from narratoria.narrator.slots import fill
from narratoria.narrator.vectors import Vectors, np
from narratoria.narrator.words import HARMFUL, STOPWORDS, split_name, stem, word_set

FEATURES: Final = (
    "meant",  # likeness to what the tool is for, as tuned on requests and the tools they mean
    "shown",  # the same, or to the nearest of its examples
    "likeness",  # of the clause to the nearest sentence of the tool
    "verb",  # the clause's verb is the tool's
    "nouns",  # nouns in common with the tool's name and description
    "required",  # how firmly the required slots are filled
    "missing",  # required slots that nothing fills
    "optional",  # optional slots filled from known words
    "unexplained",  # share of the clause's words that neither the tool nor a slot accounts for
    "rival",  # another tool has the clause's verb, and this one has not
    "misplaced",  # the clause is about a thing that no slot takes and the tool does not speak of
    "akin",  # the clause's verb is of a family with one of the tool's
    "foreign",  # it is of other families than all of the tool's
    "told",  # the clause asks how things are, and the tool tells: as far as its words are accounted for
)
# Fitted on evals/development.jsonl by evals/fit.py, rounded; `rival`, `akin`, `foreign` and `told` by hand, on
# both development files. The same for every catalogue.
WEIGHTS: Final[Mapping[str, float]] = {
    "meant": 8.0,
    "shown": 1.4,
    "likeness": 5.9,
    "verb": 1.6,
    "nouns": 0.9,
    "required": 3.5,
    "missing": 1.0,
    "optional": 2.5,
    "unexplained": -1.3,
    "rival": -0.3,
    "misplaced": -1.5,
    "akin": 1.8,
    "foreign": -1.0,
    "told": 2.4,
}
NONE: Final = 7.1  # what a tool must score for any to be meant
_AKIN: Final = 0.5  # a thing this near to a tool's sentences is what the tool is about
_OWN_DEED: Final = 0.2  # a verb of no family, this far from what a tool is for, is another deed
_VAGUE: Final = frozenset(map(stem, word_set("try let point word roll go take like please have start begin")))


@dataclass(frozen=True, slots=True)
class Sense:
    """What texts mean: vectors of the plain model by text, and of the tuned one for whole clauses."""

    plain: Mapping[str, Vectors]
    tuned: Mapping[str, Vectors]


@dataclass(frozen=True, slots=True)
class Candidate:
    tool: ToolProfile
    filling: Filling
    features: tuple[float, ...]
    score: float
    opposite: bool  # the clause's verb undoes what the tool does
    alien: bool = False  # the clause's verb says plainly that something else is to be done
    plain_deed: bool = True  # it does say what is to be done, as "get" and "put" do not

    @property
    def names_the_deed(self) -> bool:
        """Whether the clause's verb is one of the tool's, or of a family with one, and says enough by itself."""
        named = self.features[FEATURES.index("verb")] == 1.0 or self.features[FEATURES.index("akin")]
        return bool(named) and self.plain_deed

    @property
    def own_score(self) -> float:
        """The score without the claims of rivals: these say which tool is meant, not whether any is."""
        return self.score - WEIGHTS["rival"] * self.features[FEATURES.index("rival")]


@dataclass(slots=True)
class ToolIndex:
    """A catalogue, ready to be searched."""

    tools: list[ToolProfile]
    _sentences: Vectors
    _sentence_rows: list[slice]
    _purposes: Vectors  # tuned: a row per tool, then one per example
    _example_rows: list[slice]
    _known: dict[str, Vectors] = field(default_factory=dict)

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
        texts = [
            text for tool in self.tools for text in (*tool.sentences, *(slot.text for slot in tool.slots))
        ]
        values = [
            str(v)
            for tool in self.tools
            for slot in tool.slots
            if slot.kind == "choice"
            for v in slot.choices
        ]
        return {word for text in (*texts, *values) for word in split_name(text) if len(word) > 2}

    def rank(
        self, reading: Reading, recent: Recent, sense: Sense, mood: Mood = Mood.ORDER
    ) -> list[Candidate]:
        """Every usable tool with its filled slots, best first."""
        vectors = sense.plain
        clause = vectors[reading.text]
        purposes = self._purposes @ sense.tuned[reading.text]
        full = self._sentences @ clause if len(self._sentences) else np.zeros(0, dtype=np.float32)

        def alike(first: str, second: str) -> float:
            left, right = self._known.get(first), vectors.get(second)
            return 0.0 if left is None or right is None else float(left @ right)

        candidates = []
        verbs = {verb for tool in self.tools if tool.usable for verb in tool.verbs}
        said = (stem(reading.verb), reading.particle)
        owned = any(said in tool.phrasal for tool in self.tools if tool.usable)
        for at, tool in enumerate(self.tools):
            if not tool.usable:
                continue
            rows = self._sentence_rows[at]
            filling = fill(tool, reading, recent, alike)
            named = (alike(text, reading.text) for text in _chosen_texts(tool, filling))
            known = {
                phrase.text: float((self._sentences[rows] @ vectors[phrase.text]).max())
                for phrase in reading.phrases
                if phrase.text in vectors
            }
            unexplained = _unexplained(tool, reading, filling, known)
            features = (
                float(purposes[at]),
                max(map(float, [purposes[at], *purposes[self._example_rows[at]]])),
                max(float(full[rows].max()), *named, 0.0),
                *_surface(
                    tool, reading, filling, unexplained, _misplaced(tool, reading, filling, known), verbs
                ),
                *(
                    (0.0, 0.0)
                    if mood is Mood.QUESTION or (owned and said not in tool.phrasal)
                    else _kinship(tool, reading, filling)
                ),
                (1.0 - unexplained) * (mood is Mood.QUESTION and mood in tool.answers),
            )
            score = sum(WEIGHTS[name] * value for name, value in zip(FEATURES, features, strict=True))
            alien = mood is Mood.ORDER and _is_alien(tool, reading, filling, features)
            plain = says_enough(reading.verb, reading.particle)
            candidates.append(Candidate(tool, filling, features, score, _undoes(reading, tool), alien, plain))
        return sorted(candidates, key=lambda candidate: candidate.score, reverse=True)

    def nearest(self, prompt: Vectors, count: int) -> list[ToolProfile]:
        """The tools nearest in meaning to a prompt."""
        likes = (self._sentences @ prompt) if len(self._sentences) else np.zeros(0, dtype=np.float32)
        order = sorted(range(len(self.tools)), key=lambda i: -float(likes[self._sentence_rows[i]].max()))
        return [self.tools[i] for i in order[:count]]


def _undoes(reading: Reading, tool: ToolProfile) -> bool:
    return bool(reading.verb) and undoes([token.low for token in reading.tokens], tool.deeds)


def _is_alien(tool: ToolProfile, reading: Reading, filling: Filling, features: Sequence[float]) -> bool:
    """Whether the verb harms where the tool does not, or is a full verb that nothing of the tool is near to."""
    verb = stem(reading.verb) if reading.verb else ""
    if not verb or verb in tool.words or features[FEATURES.index("akin")]:
        return False
    if verb in HARMFUL:
        return True
    if families(reading.verb, reading.particle) or not says_enough(reading.verb, reading.particle):
        return False
    held = any(reading.tokens[at].low == reading.verb for at in filling.used)
    return not held and verb not in _VAGUE and features[FEATURES.index("meant")] < _OWN_DEED


def _surface(
    tool: ToolProfile,
    reading: Reading,
    filling: Filling,
    unexplained: float,
    misplaced: float,
    verbs: set[str],
) -> tuple[float, ...]:
    verb = stem(reading.verb) if reading.verb else ""
    said = {stem(t.low) for t in reading.tokens if not t.quoted and t.low not in STOPWORDS and len(t.low) > 1}
    required = tool.required
    firm = sum(filling.strength.get(slot.name, 0.0) for slot in required) / len(required) if required else 0.8
    optional = sum(filling.strength.get(slot.name, 0.0) for slot in tool.slots if not slot.required)
    return (
        (1.0 if says_enough(reading.verb, reading.particle) else 0.5)
        if verb and verb in tool.verbs
        else 0.5
        if verb and verb in tool.words
        else 0.0,
        min(len((said - {verb}) & tool.nouns), 2) / 2,
        firm,
        float(min(len(filling.missing), 2)),
        min(optional, 2.0) / 2,
        unexplained,
        float(bool(verb) and verb in verbs and verb not in tool.words),
        misplaced,
    )


def _is_its_deed(tool: ToolProfile, reading: Reading) -> bool:
    shared = families(reading.verb, reading.particle) & tool.families
    return stem(reading.verb) in tool.verbs or bool(shared)


def _kinship(tool: ToolProfile, reading: Reading, filling: Filling) -> tuple[float, float]:
    if not reading.verb or stem(reading.verb) in tool.verbs:
        return 0.0, 0.0
    if any(reading.tokens[at].low == reading.verb for at in filling.used):
        return 0.0, 0.0  # "vacuum the floor": the verb is what a slot holds
    known = families(reading.verb, reading.particle)
    if not known or not tool.families:
        return 0.0, 0.0
    if known & tool.families:
        return 1.0, 0.0
    article = {token.low for token in reading.tokens[reading.body : reading.body + 1]} & {"a", "an", "some"}
    if article and reading.verb in ("take", "pay", "run", "set", "call"):
        return 0.0, 0.0  # "take a reading": the deed is in the noun
    if known & tool.hints or not says_enough(reading.verb, reading.particle):
        return 0.0, 0.0
    return 0.0, 1.0 if len(known) == 1 else 0.5  # a verb of several families has several meanings


def _unexplained(tool: ToolProfile, reading: Reading, filling: Filling, known: Mapping[str, float]) -> float:
    """Of the words beside the verb, the share that is neither in a slot nor like what the tool is about."""
    familiar = {
        index: known.get(phrase.text, 0.0)
        for phrase in reading.phrases
        for index in range(phrase.start, phrase.end)
    }
    total = stray = 0.0
    for index in range(reading.body, len(reading.tokens)):
        token = reading.tokens[index]
        if token.quoted or token.low in STOPWORDS or not token.low[0].isalnum() or token.low == reading.verb:
            continue
        total += 1
        if index not in filling.used and reading.stems[index] not in tool.words:
            stray += 1.0 - min(max(familiar.get(index, 0.0), 0.0), 1.0)
    return stray / total if total else 0.0


def _misplaced(tool: ToolProfile, reading: Reading, filling: Filling, known: Mapping[str, float]) -> float:
    """1 where the clause's verb has an object that no slot takes and that the tool does not speak of."""
    first = next((phrase for phrase in reading.phrases if not phrase.owner), None)
    if first is None or first.prep or first.pronoun or first.quoted or not reading.body:
        return 0.0
    noun = first.end - 1
    if noun in filling.used or reading.stems[noun] in tool.words:
        return 0.0
    counted = any(first.start <= quantity.start < first.end for quantity in reading.quantities)
    if counted and filling.used & set(range(first.start, first.end)) and _is_its_deed(tool, reading):
        return 0.0  # "serve nine people" says for how many
    numbers = {index for quantity in reading.quantities for index in range(quantity.start, quantity.end)}
    own = stem(reading.verb) in tool.verbs
    verb = {at for at, token in enumerate(reading.tokens) if own and token.low == reading.verb}
    if filling.used - numbers - verb - set(range(first.start, first.end)):
        return 0.0  # "say hello to the hermit" is about the hermit
    return float(known.get(first.text, 0.0) < _AKIN)


def _chosen_texts(tool: ToolProfile, filling: Filling) -> list[str]:
    name = " ".join(split_name(tool.card.name))
    return [
        f"{name} {filling.input[slot.name]}"
        for slot in tool.slots
        if slot.kind == "choice" and filling.strength.get(slot.name, 0.0) > 0.3
    ]


def _slot_texts(tool: ToolProfile) -> list[str]:
    """What slots are compared by: their own texts, and each choice in the tool's words."""
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
        digest.update(repr((card.name, card.description, card.parameters, card.examples, card.path)).encode())
    return digest.digest()
