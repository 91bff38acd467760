"""One prompt on its way to a story's rules: its sentences, its clauses, and which rule each of them means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import Final

from narratoria.events import JsonObject
from narratoria.narrator.english import words as en
from narratoria.narrator.english.clauses import Clause, Piece, split, split_clauses
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.mood import Mood, mood
from narratoria.narrator.english.named_things import EntityFinder
from narratoria.narrator.english.phrases import Reading, read
from narratoria.narrator.english.second_thoughts import takes_back
from narratoria.narrator.english.tokens import Token, mender, tokenize
from narratoria.narrator.english.verbs import LIGHT_VERBS, akin, is_known, kin_of, tells
from narratoria.narrator.paraphrase.rule_meanings import Meaning, Meanings, Said, spoken, stems
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.patterns import MAX_PROMPT
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator, foresee, is_hedged
from narratoria.state import plain

# Chosen on evals/paraphrases/development.jsonl; a score is at most 1.6, likeness of meaning at most 1 of it.
TO_TELL: Final = 0.65  # what a rule must score to be told,
TO_ACT: Final = 0.8  # and what to be done: a wrong action is worse than a wrong word
STRANGER: Final = 0.32  # how much nearer than an everyday request that no rule is for
MARGIN: Final = 0.01  # between the best rule and the next; below it nobody can tell which was meant
_OFFERED: Final = 0.04  # what the page offers just now is a little likelier to be meant,
_DOABLE: Final = 0.06  # and so is what can be done just now
_CONSIDERED: Final = 16
_FRAMES: Final = 6
_NO_THINGS: Final = EntityFinder(())
_SMALL_WORDS: Final = ("the", "and", "then", "with", "what", "where", "this", "that", "into")
_ASIDES: Final = words("story_rules.asides")
_LONG: Final = 6
_KIN: Final = 10
_NO: Final = words("second_thoughts.denials")
_THING: Final = 3  # words a last resort may take for the name of a thing


@dataclass(frozen=True, slots=True)
class _Meant:
    action: Action
    guessed: bool = True  # by likeness, not by the rule's own words


@dataclass(slots=True)
class Understanding:
    """The actions found for each clause of a prompt, and the rest of the prompt."""

    actions: list[Action] = field(default_factory=list)
    left_be: bool = False  # there was nothing but actions that are ruled out
    asked: bool = False  # there was nothing but questions
    confirm: Action | None = None  # an action that cannot be undone and was not asked for in plain words
    missed: list[str] = field(default_factory=list)  # orders that no rule could be found for


class RuleSearch:
    """The search for the rules that one prompt means."""

    def __init__(self, scripted: ScriptedNarrator, meanings: Meanings, request: NarratorRequest) -> None:
        self.scripted = scripted
        self.meanings = meanings
        self.request = request
        self.state: JsonObject = plain(request.state)
        self.thing = ""  # what was spoken of last, for "it"

    @cached_property
    def offered(self) -> dict[str, Said]:
        """The choices on the page that the rules answer."""
        request = self.request
        answered = [one for one in request.choices if self.scripted.answer(one, request, request.state)]
        return {choice: self.meanings.say(choice) for choice in answered}

    def understanding(self) -> Understanding:
        found = Understanding()
        self.thing = self._spoken_of()
        ruled_out = False
        for tokens, feeling in self._sentences():
            if feeling in (Mood.QUESTION, Mood.MUSING):
                found.asked = True
                self._add(self._answer_question(tokens), found)
                continue
            for place, clause in enumerate(self._clauses(tokens)):
                if clause.negated or (feeling is Mood.RULED_OUT and not place):
                    ruled_out = True
                    continue
                found.asked = clause.mood is Mood.MUSING  # "I already rang the bell, so read the logbook"
                if found.asked:
                    told = self._answer_question(clause.tokens)
                    self._add(told if told is not None and not told.action.acts else None, found)
                    continue
                self._follow(clause, found)
        found.left_be = ruled_out and not found.actions and found.confirm is None and not found.asked
        if not (found.actions or found.confirm or found.left_be or found.asked):
            whole = self._answer(self.request.prompt)  # "yes" is a word, though no clause
            found.actions = [whole] if whole is not None and not whole.acts else []
        return found

    def _follow(self, clause: Clause, found: Understanding) -> None:
        for part in _conjuncts(clause):
            if found.actions and len(part.tokens) == 1 and self._answer(part.text) is None:
                continue  # a word left over: "to the next | floor"
            if _is_aside(part):
                continue
            if not _is_remark(part):
                meant = self._understand(part)
                if meant is None and len(part.tokens) > 1 and part.tokens[0].low in en.VERBS:
                    found.missed.append(part.text)
                self._add(meant, found)
            elif not found.actions:
                self._add(self._answer_question(part.tokens), found)

    def _add(self, meant: _Meant | None, found: Understanding) -> None:
        last = found.actions[-1] if found.actions else None
        if meant is None or (last is not None and (last.ends or meant.action.rule is last.rule)):
            return
        if meant.action.is_final and (meant.guessed or is_hedged(self.request.prompt)):
            found.confirm = found.confirm or meant.action
            return
        found.actions.append(meant.action)
        self.state = foresee(meant.action, self.state)

    def _sentences(self) -> Iterator[tuple[list[Token], Mood]]:
        """The sentences of the prompt, typos mended, each with its mood: an order, a question, a prohibition."""
        told = split(tokenize(self.request.prompt, self._mender()), lambda tokens, at, piece: (0, ""))
        taken_back = False
        for sentence, following in zip_longest(told, told[1:]):
            words = [one.text if one.quoted else one.low for one in sentence.tokens]
            feeling = mood(words, asks=sentence.asks)
            if taken_back and _is_no(sentence):
                feeling = Mood.RULED_OUT  # it has done its work on the sentence before
            answered = following is not None and feeling is not Mood.QUESTION
            taken_back = answered and _is_no(following, sentence.asks)
            yield sentence.tokens, Mood.RULED_OUT if taken_back else feeling

    def _mender(self) -> Callable[[str], str]:
        """Mends typos; a small word is likelier to be meant than one of the story's: "teh" is "the", not "tea"."""
        known = self.meanings.vocabulary()
        mend = mender(known, self.meanings.knows_word)

        def mended(word: str) -> str:
            if is_known(word):
                return word
            if len(word) < _LONG and word not in known and not self.meanings.knows_word(word):
                small = next((one for one in _SMALL_WORDS if en.distance(word, one, 1) <= 1), None)
                return small or mend(word)
            return mend(word)

        return mended

    def _clauses(self, tokens: Sequence[Token]) -> list[Clause]:
        verbs = {en.stem(phrase.split()[0]) for phrase in self.meanings.phrases}
        return split_clauses(tokens, lambda word: en.stem(word) in verbs)

    def _spoken_of(self) -> str:
        """The thing the player spoke of in the last turn, for "it"."""
        things = ""
        for turn in self.request.history[-1:]:
            for clause in self._clauses(tokenize(turn.prompt[:MAX_PROMPT])):
                nouns = _nouns(read(clause, _NO_THINGS))
                things = nouns[0] if nouns else things
        return things

    def _answer(self, words: str) -> Action | None:
        action = self.scripted.answer(words, self.request, self.state)
        if action is not None and action.rule.fallback:
            captured = max((len(value.split()) for value in action.groups.values()), default=0)
            return action if captured <= _THING else None  # "whether anybody is at home" is no thing to see
        return action

    def _understand(self, clause: Clause) -> _Meant | None:
        reading = read(clause, _NO_THINGS)
        text = self._resolved(reading)
        by_words = self._answer(text)
        if by_words is not None and not by_words.rule.fallback:
            return _Meant(by_words, guessed=False)
        meant = self._by_kin(text) or self._mean(text, reading)
        if by_words is not None and (meant is None or meant.rule.fallback or meant.is_final):
            return _Meant(by_words, guessed=False)
        return _Meant(meant) if meant is not None else None

    def _by_kin(self, text: str) -> Action | None:
        """The action for the clause with another verb of the same family: "nab the matches", "take the matches"."""
        verb, _, rest = text.partition(" ")
        if rest and verb not in LIGHT_VERBS:
            for other in kin_of(verb, self.meanings.openings)[:_KIN]:
                action = self._answer(f"{other} {rest}")
                if action and not action.rule.fallback and self.meanings.speaks_of(action.rule.id, rest):
                    return action
        return None

    def _answer_question(self, tokens: Sequence[Token]) -> _Meant | None:
        """A question is answered by the author's own words for it, or told; no guess at it changes the world."""
        reading = read(Clause(tuple(tokens)), _NO_THINGS)
        text = self._resolved(reading)
        by_words = self._answer(text)
        if by_words is not None and not by_words.rule.fallback:
            return _Meant(by_words, guessed=False)
        meant = self._mean(text, reading, question=True)
        chosen = meant or by_words
        return _Meant(chosen) if chosen is not None and not chosen.acts else None

    def _resolved(self, reading: Reading) -> str:
        """The clause with "it" replaced by what was spoken of before."""
        words = [token.text if token.quoted else token.low for token in reading.tokens]
        if self.thing:
            for phrase in reading.phrases:
                if phrase.pronoun in ("it", "them", "that", "one") and not phrase.owner:
                    words[phrase.start : phrase.end] = [self.thing] + [""] * (phrase.end - phrase.start - 1)
        nouns = _nouns(reading)
        if nouns:
            self.thing = nouns[0]
        return " ".join(word for word in words if word)

    def _mean(self, text: str, reading: Reading, *, question: bool = False) -> Action | None:
        if not any(letter.isalpha() for letter in text):
            return None  # "-1", "?!"
        said = self.meanings.say(text)
        names = self.meanings.rules_for(said, self.state)
        best: dict[str, tuple[float, Action]] = {}
        for meaning in self._candidates(said, names, reading):
            action = self._answer(meaning.phrase)
            if action is None or (action.rule.fallback and action.rule.id not in meaning.rules):
                continue
            if question and not tells(meaning.phrase):
                continue
            if action.acts and (question or not meaning.sure):
                continue
            score = meaning.score + _DOABLE * action.acts
            if action.rule.id not in best or score > best[action.rule.id][0]:
                best[action.rule.id] = (score, action)
        ranked = sorted(best.values(), key=lambda one: -one[0])
        if not ranked:
            return None
        score, first = ranked[0]
        near = len(ranked) > 1 and score - ranked[1][0] < MARGIN
        if near or score < (TO_ACT if first.acts else TO_TELL):
            return None
        return None if self.meanings.is_strange(said, score - STRANGER) else first

    def _candidates(self, said: Said, names: Sequence[str], reading: Reading) -> Iterator[Meaning]:
        frames = 0
        for meaning in self.meanings.nearest(said, names, _CONSIDERED):
            if "{" not in meaning.phrase:
                yield meaning
            elif frames < _FRAMES:
                frames += 1
                yield from self._filled(meaning, said, reading)
        for choice, known in self.offered.items():
            score = self.meanings.score(said, known.text, (known.vector, known.masked))
            yield Meaning(choice, score + _OFFERED)

    def _filled(self, meaning: Meaning, said: Said, reading: Reading) -> Iterator[Meaning]:
        """A phrase with groups, filled with what the player spoke of and the phrase does not name itself."""
        own = stems(spoken(meaning.phrase))
        same = akin(said.verbs, {en.stem(meaning.phrase.split()[0])})
        if not (same if any(map(is_known, said.verbs)) else own & said.stems):
            return  # else whatever was said would be like itself, put into the gap: "hit (stupid game) with torch"
        things = [p.text for p in reading.phrases if not p.pronoun and not stems(p.text) <= own]
        slots = [word for word in meaning.phrase.split() if word.startswith("{")]
        if len(things) < len(slots):
            return
        values = dict(zip(slots, things, strict=False))
        phrase = " ".join(values.get(word, word) for word in meaning.phrase.split())
        known = self.meanings.say(phrase)
        score = self.meanings.score(said, known.text, (known.vector, known.masked))
        yield Meaning(phrase, score, meaning.rules)


def _nouns(reading: Reading) -> list[str]:
    return [one.text for one in reading.phrases if not one.pronoun and not one.quoted and not one.clausal]


def _is_no(sentence: Piece, answers: bool = False) -> bool:
    """Tell if a sentence takes back the one before it: "Go inside? No." An answer may go on: "No, go up"."""
    marked = [token.low for token in sentence.tokens]
    said = [word for word in marked if word[:1].isalnum()]
    if takes_back(said) or (len(said) == 1 and said[0] in _NO):
        return True
    return answers and len(marked) > 2 and marked[0] in _NO and marked[1] == ","


def _is_remark(clause: Clause) -> bool:
    """ "it might come in handy" says how things are, and asks for nothing."""
    words = [token.low for token in clause.tokens[:2]]
    about = (en.PRONOUNS | en.SUBJECTS | {"there"}) - {"i", "we", "you"}
    return len(words) == 2 and words[0] in about and words[1] in en.AUXILIARIES


def _is_aside(clause: Clause) -> bool:
    """ "if it is not too much trouble" is about the wish; the wish itself stands in another clause."""
    first, *rest = [token.low for token in clause.tokens]
    return first in _ASIDES and not en.AUXILIARIES.isdisjoint(rest)


def _conjuncts(clause: Clause) -> list[Clause]:
    """ "grab the oil and the rope" is two actions with one verb."""
    words = [token.low for token in clause.tokens]
    joints = [at for at in range(1, len(words) - 1) if words[at] == "and" and words[at + 1] in en.DETERMINERS]
    for at in joints:
        things = [index for index in range(1, at) if words[index] in en.DETERMINERS]
        if things:
            head = clause.tokens[: things[-1]]
            rest = replace(clause, tokens=(*head, *clause.tokens[at + 1 :]))
            return [replace(clause, tokens=clause.tokens[:at]), *_conjuncts(rest)]
    return [clause]
