"""The lexicon, and the forms of words that are read from it."""

from __future__ import annotations

import time

import pytest

from narratoria.narrator.english import lexicon
from narratoria.narrator.english.clauses import split_clauses
from narratoria.narrator.english.mood import Mood
from narratoria.narrator.english.normalise import spelled_out
from narratoria.narrator.english.tokens import tokenize
from narratoria.narrator.english.words import is_past, stem


def test_a_choice_in_a_phrase_stands_for_each_of_its_words() -> None:
    assert lexicon.phrases_in("(good|bad) idea / no") == {("good", "idea"), ("bad", "idea"), ("no",)}
    assert lexicon.phrases_in("(oh|) never mind") == {("oh", "never", "mind"), ("never", "mind")}


def test_the_lexicon_is_read_fast() -> None:
    lexicon._lexicon.cache_clear()
    start = time.process_time()
    lexicon.entry("verbs.plain")
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize(
    ("form", "base"),
    [("rang", "ring"), ("sung", "sing"), ("fled", "flee"), ("taught", "teach"), ("fed", "feed")],
)
def test_an_irregular_form_is_past_and_has_the_stem_of_its_verb(form: str, base: str) -> None:
    assert is_past(form)
    assert stem(form) == stem(base)


@pytest.mark.parametrize("word", ["ring", "put", "left", "speed", "bed"])
def test_no_other_word_is_past(word: str) -> None:
    assert not is_past(word)


@pytest.mark.parametrize("flower", ["rose", "saw", "felt"])
def test_a_past_form_that_is_a_thing_too_keeps_its_own_stem(flower: str) -> None:
    assert is_past(flower)
    assert stem(flower) == flower.removesuffix("e")


@pytest.mark.parametrize(
    "prompt", ["I already rang the bell", "Ada sang the hymn yesterday", "we have already fled the tower"]
)
def test_an_irregular_past_reports_and_asks_for_nothing(prompt: str) -> None:
    assert [clause.mood for clause in split_clauses(tokenize(prompt))] == [Mood.MUSING]


@pytest.mark.parametrize(
    ("typed", "plain"),
    [("dont go", "do not go"), ("I can’t, it's lit", "I can not, it is lit"), ("we'll go", "we will go")],
)
def test_contractions_are_spelled_out(typed: str, plain: str) -> None:
    assert spelled_out(typed) == plain
