"""The meaning of a clause among a story's rules: phrases of the rules, and their likeness to the clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from narratoria.narrator.embedding.background import GradualVectors
from narratoria.narrator.embedding.minilm import CachedEmbedder, Embedder
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.narrator.english import words as en
from narratoria.narrator.english.clauses import Clause
from narratoria.narrator.english.named_things import EntityFinder
from narratoria.narrator.english.opposites import undoes
from narratoria.narrator.english.phrases import read
from narratoria.narrator.english.tokens import tokenize
from narratoria.narrator.english.verbs import LIGHT_VERBS, akin, is_known
from narratoria.narrator.paraphrase.rule_phrases import phrases
from narratoria.narrator.rules.patterns import bare, meaningful
from narratoria.narrator.rules.rule_file import Rule, Rules

PHRASES_PER_RULE: Final = 16
_SHORTLIST: Final = 20  # rules a clause is compared with in full; 12 do as well on the development files
_SAMPLE: Final = 3  # phrases that show whether a rule is one of them
_NO_THINGS: Final = EntityFinder(())
# What these weigh beside likeness of meaning, which is at most 1. Chosen on evals/paraphrases/development.jsonl.
_WORDS_IN_COMMON: Final = 0.3
_SAME_ACTION: Final = 0.3
_OTHER_THING: Final = 0.1  # taken off for a thing that other rules speak of and this one does not


@dataclass(frozen=True, slots=True)
class Meaning:
    """A phrase of the story that the clause may mean, and the rules it was made from."""

    phrase: str
    score: float
    rules: frozenset[str] = frozenset()
    sure: bool = True  # its verb and a thing of it are what was said, or other words for them


@dataclass(frozen=True, slots=True)
class Said:
    """A clause, ready to be compared: its words, their vector, and the vector of the action without its things."""

    text: str
    vector: Vectors
    masked: Vectors
    things: frozenset[str] = frozenset()  # stems of what it speaks of, without "old" and "iron"
    verbs: frozenset[str] = frozenset()  # stems that may say what is done; none where there is no verb

    @classmethod
    def of(cls, text: str, embed: Callable[[Sequence[str]], Vectors]) -> Said:
        words = text.split()
        reading = read(Clause(tuple(tokenize(text))), _NO_THINGS)
        vector, masked = embed([text, masked_text(text)])
        head = reading.verb or (words[0] if len(words) > 1 or is_known(text) else "")
        light = head in LIGHT_VERBS or not reading.verb
        verb = "" if head in LIGHT_VERBS else en.stem(head)
        things = {word for phrase in reading.phrases for word in stems(phrase.text.split()[-1])}
        verbs = (
            {en.stem(head)} | {en.stem(word) for word in words if light and is_known(word)} if head else set()
        )
        return cls(text, vector, masked, frozenset(things - {verb}), frozenset(verbs))

    @property
    def stems(self) -> set[str]:
        return stems(self.text)


class Meanings:
    """The phrases of a story's rules, embedded when a prompt is first compared with them.

    A prompt is compared with those rules only that may answer it: some of their cases fit the state, and their action
    is not plainly another. The answer is the same whether few or all phrases are embedded yet.
    """

    def __init__(self, rules: Rules, embedder: Embedder) -> None:
        self._language = rules.language
        self._embedder = embedder
        self._told = {rule.id: rule for rule in rules.rules}
        known = ((rule.id, [word for one in rule.patterns for word in one.words]) for rule in rules.rules)
        self._rules = {name: stems(" ".join(words)) for name, words in known}
        self._verbs = {rule.id: _verbs(rule) for rule in rules.rules}
        owners = _owners(rules.rules)
        self.phrases = list(owners)
        self._owners = [frozenset(of) for of in owners.values()]
        # An action is the rule's, whichever of its things it was paired with when the phrases were made.
        self._rows = {
            name: [at for at, of in enumerate(self._owners) if name in of]
            for name in dict.fromkeys(name for of in self._owners for name in of)
        }
        # A last resort speaks of anything: it makes no thing another rule's.
        told = [self._rules[rule.id] for rule in rules.rules if not rule.fallback]
        self._spoken_of = frozenset().union(*told)
        self._masked = [masked_text(text) for text in self.phrases]
        self._vectors = GradualVectors([*self.phrases, *self._masked], embedder)

    def say(self, text: str) -> Said:
        """The clause, ready to be compared with the phrases."""
        return Said.of(self.plain(text) or text, self._embed_words)

    def knows_word(self, word: str) -> bool:
        return self._embedder.knows_word(word)

    def embed_all(self, state: Mapping[str, Any]) -> None:
        """Embed what is not embedded yet: first what may be meant in this state."""
        rows = [
            at for rule in self._told.values() if rule.may_answer(state) for at in self._rows.get(rule.id, ())
        ]
        self._vectors.make_all([text for at in rows for text in (self.phrases[at], self._masked[at])])

    def vocabulary(self) -> set[str]:
        """Every word of the phrases, for mending typos."""
        return {word for phrase in self.phrases for word in phrase.split()}

    def phrases_of(self, rule: str) -> list[str]:
        """The phrases made from a rule's patterns, plain ones first."""
        return [self.phrases[at] for at in self._rows.get(rule, ())]

    def plain(self, text: str) -> str:
        """The text as phrases are written: no articles, no courtesies."""
        return " ".join(bare(meaningful(text, self._language), self._language))

    def rules_for(self, said: Said, state: Mapping[str, Any]) -> list[str]:
        """The rules that may answer the clause, none that undoes what it asks for; of many, those that look likeliest.

        Most of a story is about something else than the clause, and a few phrases of a rule show it.
        """
        names = [
            name for name in self._rows if self._told[name].may_answer(state) and not self._bars(said, name)
        ]
        if len(names) <= _SHORTLIST:
            return names
        samples = {name: self._rows[name][:: -(-len(self._rows[name]) // _SAMPLE)] for name in names}
        rows = sorted({at for own in samples.values() for at in own})
        vectors = self._vectors.of([self.phrases[at] for at in rows])
        likes = dict(zip(rows, vectors @ said.vector, strict=True))
        words = said.stems
        looks = {
            name: max(likes[at] for at in own) + _in_common(words, self._rules[name])
            for name, own in samples.items()
        }
        return sorted(names, key=lambda name: -looks[name])[:_SHORTLIST]

    def nearest(self, said: Said, names: Sequence[str], count: int) -> list[Meaning]:
        """The phrases of these rules the clause most likely means, best first."""
        rows = sorted({at for name in names for at in self._rows[name]})
        if not rows:
            return []
        likeness = dict(
            zip(rows, self._vectors.of([self._masked[at] for at in rows]) @ said.masked, strict=True)
        )
        aside = {
            name: self._aside(said, name, float(max(likeness[at] for at in self._rows[name])))
            for name in names
        }
        owners = [self._owners[at] & aside.keys() for at in rows]
        likes = self._vectors.of([self.phrases[at] for at in rows]) @ said.vector
        likes = likes + np.array([max(aside[name] for name in own) for own in owners])
        words = said.stems
        found = []
        for place in np.argsort(-likes)[: 4 * count]:
            own = owners[place]
            known = set().union(*(self._rules[name] for name in own))
            sure = any(self._is_sure(said, name) for name in own)
            score = float(likes[place]) + _in_common(words, known)
            found.append(Meaning(self.phrases[rows[place]], score, own, sure))
        return sorted(found, key=lambda meaning: -meaning.score)[:count]

    def score(self, said: Said, phrase: str, vectors: Sequence[Vectors]) -> float:
        """The same for a phrase that is not of the rules: `vectors` are its own and its action's."""
        like = float(vectors[0] @ said.vector) + _SAME_ACTION * float(vectors[1] @ said.masked)
        return like + _in_common(said.stems, stems(phrase))

    def _embed_words(self, texts: Sequence[str]) -> Vectors:
        if isinstance(self._embedder, CachedEmbedder):
            return self._embedder.embed(texts, keep=False)  # what a player types does not pile up on disk
        return self._embedder.embed(texts)

    def _bars(self, said: Said, name: str) -> bool:
        """Tell if a rule cannot be meant: the clause undoes its action, or plainly names another."""
        verbs = self._verbs[name]
        if undoes(said.text.split(), verbs):
            return True
        return any(map(is_known, said.verbs)) and not akin(said.verbs, verbs)

    def _is_sure(self, said: Said, name: str) -> bool:
        """Tells if the verb is one of the rule's, and the object a thing of the rule, none of another, or none."""
        others = said.stems - said.verbs
        about = not others or (
            others & self._rules[name] and not (said.things - self._rules[name]) & self._spoken_of
        )
        return bool(about) and (not said.verbs or akin(said.verbs, self._verbs[name]))

    def _aside(self, said: Said, name: str, same_action: float) -> float:
        """The score of a rule beside its phrases: for its action, and against the things of other rules."""
        others = sum(1 for thing in said.things - self._rules[name] if thing in self._spoken_of)
        return _SAME_ACTION * same_action - _OTHER_THING * min(others, 2)


def _in_common(said: set[str], known: set[str]) -> float:
    """The score for the share of the clause's words that the rule knows."""
    return _WORDS_IN_COMMON * len(said & known) / len(said) if said else 0.0


def _owners(rules: Sequence[Rule]) -> dict[str, list[str]]:
    """The phrases made from the patterns of the rules, each with the ids of its rules."""
    owners: dict[str, list[str]] = {}
    for rule in rules:
        # Each costs a moment when a story is first played: where only words hang on it, half as many will do.
        share = 1 if any(case.acts for case in rule.cases) else 2
        for phrase in phrases(rule.patterns, PHRASES_PER_RULE // share):
            # A single letter is a key, not a meaning; what a group captures is not known beforehand.
            if "{" not in phrase and len(phrase) > 2:
                owners.setdefault(phrase, []).append(rule.id)
    return owners


def masked_text(text: str) -> str:
    """A phrase without its things: "pour into". A placeholder for them would make all actions look alike."""
    return read(Clause(tuple(tokenize(text))), _NO_THINGS).action or text


def stems(text: str) -> set[str]:
    said = (word for word in text.split() if word not in en.STOPWORDS and len(word) > 1)
    return set(map(en.stem, said))


def _verbs(rule: Rule) -> set[str]:
    return {en.stem(word) for pattern in rule.patterns for word in pattern.openings}
