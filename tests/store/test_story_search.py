"""Search in a story: folding, what counts, excerpts."""

from __future__ import annotations

import time

import pytest

from narratoria.events import Narration, NarrationDelta, TurnStarted
from narratoria.session import Record
from narratoria.store.story_search import fold_text, search_story, words_of


def told(*turns: tuple[str, str]) -> list[Record]:
    records: list[Record] = []
    for turn, (prompt, text) in enumerate(turns, 1):
        records.append(Record(len(records) + 1, 0.0, turn, TurnStarted(turn=turn, prompt=prompt)))
        records.append(Record(len(records) + 1, 0.0, turn, Narration(text=text)))
    return records


def marked(records: list[Record], query: str) -> dict[int, str]:
    """The excerpts of what is found, by turn, with the found words in brackets."""
    counting = sorted({record.turn for record in records if record.turn is not None})
    found = search_story(records, counting, words_of(query)).turns
    return {
        one.turn: "".join(f"[{run.text}]" if run.found else run.text for run in one.excerpt) for one in found
    }


@pytest.mark.parametrize(
    ("text", "query", "excerpt"),
    [
        ("The LAMP is out.", "lamp", "The [LAMP] is out."),
        ("Das Café in der Straße", "cafe STRASSE", "Das [Café] in der [Straße]"),
        ("El nin\u0303o duerme.", "NIÑO", "El [nin\u0303o] duerme."),
        ("Ὁ Ὀδυσσεύς", "οδυσσευσ", "Ὁ [Ὀδυσσεύς]"),
        ("Ёлка стоит.", "елка", "[Ёлка] стоит."),
        ("שָׁלוֹם לך", "שלום", "[שָׁלוֹם] לך"),
        ("潮が満ちる。", "満ち", "潮が[満ち]る。"),
        ("It doesn’t — “stay” — open…", "doesn't", "It [doesn’t] — “stay” — open…"),
        ("A **bra**ss `key` for _Marit_", "brass marit", "A [brass] key for [Marit]"),
        ("# The *third* night\n\nIt rains.", "third night", "The [third] [night]"),
        ("see [the table](https://x.example) now", "table", "see the [table] now"),
        ("a brass lamp\nand key", '"lamp and key"', "a brass [lamp and key]"),
        ("one key and one lamp", '"key lamp"', None),
        ("only a lamp", "lamp key", None),
        ("か", "が", None),
        ("<b onclick=alert(1)>lamp</b>", "lamp", "<b onclick=alert(1)>[lamp]</b>"),
    ],
)
def test_words_are_found_whatever_their_case_accents_and_marks(
    text: str, query: str, excerpt: str | None
) -> None:
    assert marked(told(("", text)), query) == ({1: excerpt} if excerpt else {})


def test_an_excerpt_is_where_most_of_the_words_stand_together() -> None:
    filler = "The road goes on and on between the dark hills. " * 30
    text = f"A lamp. {filler}She gives you the brass lamp and a small key. {filler}"
    (excerpt,) = marked(told(("walk", text)), "key lamp brass").values()
    assert excerpt.startswith("…")
    assert excerpt.endswith("…")
    assert "the [brass] [lamp] and a small [key]." in excerpt
    assert len(excerpt) < 180


def test_only_turns_that_count_are_found_the_newest_first_and_in_parts() -> None:
    records = told(*((f"step {number}", "The lamp.") for number in range(1, 8)))
    counting = [1, 2, 3, 5, 7]
    found = search_story(records, counting, ["lamp"], most=2)
    assert (found.total, [(one.turn, one.newer) for one in found.turns]) == (5, [(7, 0), (5, 1)])
    older = search_story(records, counting, ["lamp"], before=5, most=2)
    assert (older.total, [(one.turn, one.newer) for one in older.turns]) == (3, [(3, 2), (2, 3)])
    assert [one.said for one in search_story(records, counting, ["step"]).turns] == [True] * 5


def test_what_the_page_does_not_show_is_not_found() -> None:
    started = Record(1, 0.0, 1, TurnStarted(turn=1, prompt="opening words", origin="opening"))
    deltas = [Record(2, 0.0, 1, NarrationDelta(text="A drago")), Record(3, 0.0, 1, NarrationDelta(text="n."))]
    assert marked([started, *deltas], "dragon") == {1: "A [dragon]."}
    final = Record(4, 0.0, 1, Narration(text="A lamp.", attempt=2))
    assert marked([started, *deltas, final], "dragon") == {}
    assert marked([started, *deltas, final], "opening") == {}


def test_a_query_is_words_and_phrases_none_twice() -> None:
    assert words_of("Lamp lamp LÁMP lam ’ \t **") == ["lamp", "'"]
    assert words_of('“brass  Key” key "" "') == ["brass key"]
    assert words_of(" *** `` ") == []
    assert fold_text("ﬁn") == "fin"


HOSTILE = ("b" + "_" * 400_000 + "a", "[](" * 100_000, "a" * 400_000, "\n \n" * 100_000, "> " * 200_000)


@pytest.mark.parametrize("text", [*HOSTILE, "n\u0303" * 100_000])
def test_hostile_text_is_searched_in_linear_time(text: str) -> None:
    begun = time.process_time()
    search_story(told(("", text)), [1], ["a", "aa", "zz"])
    assert time.process_time() - begun < 3
