"""One prompt on its way to a story's rules: its sentences, its clauses, and which rule each of them means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from narratoria.narrator.english.verbs import tells
from narratoria.narrator.paraphrase.rule_meanings import Meaning, Meanings, Said
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.patterns import MAX_PROMPT
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator, foresee, is_hedged
from narratoria.state import plain

# Chosen on the development files of evals/; a score is at most 1.6, likeness of meaning at most 1 of it.
TO_ASK: Final = 0.7  # what a rule must score to be asked about ("Do you mean … ?"),
TO_TELL: Final = 0.75  # to be told,
TO_ACT: Final = 0.95  # and to be done: a wrong action is worse than a wrong word
LEAD: Final = 0.06  # over the next rule, to be told,
LEAD_TO_ACT: Final = 0.06  # and to be done; below it nobody can tell which was meant
BEHIND: Final = 0.3  # the best one at most, to be asked about beside it
OVER_FALLBACK: Final = 0.9  # what a rule must score to be asked about where a last resort has an answer
ASKED: Final = 3  # rules asked about at once
_OFFERED: Final = 0.04  # what the page offers just now is a little likelier to be meant,
_DOABLE: Final = 0.06  # and so is what can be done just now
_CONSIDERED: Final = 16
_NO_THINGS: Final = EntityFinder(())
_NO: Final = words("second_thoughts.denials")
_THING: Final = 3  # words a last resort may take for the name of a thing


@dataclass(frozen=True, slots=True)
class Guess:
    """A rule that a clause may mean, by likeness."""

    action: Action
    score: float
    sure: bool  # its verb and a thing of it are what was said

    def is_certain(self, lead: float) -> bool:
        """Tells if it is answered without asking back; `lead` is what it scores above the next rule."""
        if self.action.acts:
            return self.sure and self.score >= TO_ACT and lead >= LEAD_TO_ACT
        return self.score >= TO_TELL and lead >= (LEAD if self.sure else BEHIND)


@dataclass(frozen=True, slots=True)
class _Meant:
    action: Action | None = None
    guessed: bool = True  # by likeness, not by the rule's own words
    doubts: tuple[Action, ...] = ()  # one of these is meant, and nobody can tell which


@dataclass(slots=True)
class Understanding:
    """The actions found for each clause of a prompt, and the rest of the prompt."""

    actions: list[Action] = field(default_factory=list)
    left_be: bool = False  # there was nothing but actions that are ruled out
    asked: bool = False  # there was nothing but questions
    # To be asked about: one that cannot be undone and was not asked for in plain words, or the likeliest of a guess.
    doubts: tuple[Action, ...] = ()
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
                    self._add(
                        told if told is not None and told.action and not told.action.acts else None, found
                    )
                    continue
                self._follow(clause, found)
        found.left_be = ruled_out and not (found.actions or found.doubts or found.asked)
        if not (found.actions or found.doubts or found.left_be or found.asked):
            whole = self._answer(self.request.prompt)  # "yes" is a word, though no clause
            found.actions = [whole] if whole is not None and not whole.acts else []
        return found

    def _follow(self, clause: Clause, found: Understanding) -> None:
        if found.actions and len(clause.tokens) == 1 and self._answer(clause.text) is None:
            return  # a word left over: "to the next | floor"
        if not _is_aside(clause) and not _is_remark(clause):
            meant = self._understand(clause)
            if meant is None and len(clause.tokens) > 1 and clause.tokens[0].low in en.VERBS:
                found.missed.append(clause.text)
            self._add(meant, found)
        elif not found.actions and not _is_aside(clause):
            self._add(self._answer_question(clause.tokens), found)

    def _add(self, meant: _Meant | None, found: Understanding) -> None:
        last = found.actions[-1] if found.actions else None
        if meant is None or found.doubts or (last is not None and last.ends):
            return  # what comes after a doubt waits for the answer
        action = meant.action
        if action is None or (action.is_final and (meant.guessed or is_hedged(self.request.prompt))):
            found.doubts = meant.doubts or (() if action is None else (action,))
        elif last is None or action.rule is not last.rule:
            found.actions.append(action)
            self.state = foresee(action, self.state)

    def _sentences(self) -> Iterator[tuple[list[Token], Mood]]:
        """The sentences of the prompt, typos mended, each with its mood: an order, a question, a prohibition."""
        mend = mender(self.meanings.vocabulary(), self.meanings.knows_word)
        told = split(tokenize(self.request.prompt, mend), lambda tokens, at, piece: (0, ""))
        taken_back = False
        for sentence, following in zip_longest(told, told[1:]):
            words = [one.text if one.quoted else one.low for one in sentence.tokens]
            feeling = mood(words, asks=sentence.asks)
            if taken_back and _is_no(sentence):
                feeling = Mood.RULED_OUT  # it has done its work on the sentence before
            answered = following is not None and feeling is not Mood.QUESTION
            taken_back = answered and _is_no(following, sentence.asks)
            yield sentence.tokens, Mood.RULED_OUT if taken_back else feeling

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
        meant = self._mean(text, least=TO_ASK if by_words is None else OVER_FALLBACK)
        if by_words is not None and (
            meant is None or (meant.action is not None and meant.action.rule.fallback)
        ):
            return _Meant(by_words, guessed=False)
        return meant

    def _answer_question(self, tokens: Sequence[Token]) -> _Meant | None:
        """A question is answered by the author's own words for it, or told; no guess at it changes the world."""
        reading = read(Clause(tuple(tokens)), _NO_THINGS)
        text = self._resolved(reading)
        by_words = self._answer(text)
        if by_words is not None and not by_words.rule.fallback:
            return _Meant(by_words, guessed=False)
        meant = self._mean(text, question=True)
        if meant is not None:
            return meant
        return _Meant(by_words) if by_words is not None and not by_words.acts else None

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

    def _mean(self, text: str, *, question: bool = False, least: float = TO_ASK) -> _Meant | None:
        """The rule that the clause means; where that is not certain, the likeliest, to be asked about."""
        if not any(letter.isalpha() for letter in text):
            return None  # "-1", "?!"
        said = self.meanings.say(text)
        ranked = self._ranked(said, question)
        if not ranked or ranked[0].score < least:
            return None
        first, *others = ranked
        lead = first.score - others[0].score if others else 1.0
        if first.is_certain(lead) and not (question and first.action.acts):
            return _Meant(first.action)
        near = [one.action for one in ranked if one.score >= max(least, first.score - BEHIND)]
        doubts = tuple(one for one in near if not one.rule.fallback)[:ASKED]
        return _Meant(doubts=doubts) if doubts else None

    def _ranked(self, said: Said, question: bool) -> list[Guess]:
        """The rules that the clause may mean, each once, the likeliest first."""
        best: dict[str, Guess] = {}
        for meaning in self._candidates(said):
            action = self._answer(meaning.phrase)
            if action is None or (action.rule.fallback and action.rule.id not in meaning.rules):
                continue
            if question and not tells(meaning.phrase):
                continue
            guess = Guess(action, meaning.score + _DOABLE * action.acts, meaning.sure)
            if action.rule.id not in best or guess.score > best[action.rule.id].score:
                best[action.rule.id] = guess
        return sorted(best.values(), key=lambda one: -one.score)

    def _candidates(self, said: Said) -> Iterator[Meaning]:
        names = self.meanings.rules_for(said, self.state)
        yield from self.meanings.nearest(said, names, _CONSIDERED)
        for choice, known in self.offered.items():
            score = self.meanings.score(said, known.text, (known.vector, known.masked))
            yield Meaning(choice, score + _OFFERED)


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
    return first in words("story_rules.asides") and not en.AUXILIARIES.isdisjoint(rest)
