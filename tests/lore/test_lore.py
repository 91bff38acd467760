"""What a story remembers: by meaning, by keyword, by state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest

pytest.importorskip("tokenizers")

from narratoria.lore.entries import LoreEntry, LoreInvalid
from narratoria.lore.lore import Recall, StoryMemory
from narratoria.lore.lore_files import Memory, read_lore, split_lore
from narratoria.narrator.embedding.minilm import DIMENSIONS, MiniLM
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.tools.contract.conditions import condition


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


class Scattered:
    """A vector per text, by chance but always the same: for what depends on numbers and not on meaning."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = [np.random.default_rng(abs(hash(text)) % 2**32).standard_normal(DIMENSIONS) for text in texts]
        vectors = np.asarray(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def knows_word(self, word: str) -> bool:
        return True


def words(text: str) -> int:
    return len(text.split())


# --- recall --------------------------------------------------------------------------------------------


def test_the_memory_nearest_in_meaning_comes_first(model: MiniLM) -> None:
    recall = Recall(model)
    recall.add(
        [
            Memory("The keeper's daughter drowned in the storm of '61."),
            Memory("Grain is paid for in salt at the market."),
            Memory("The lamp burns whale oil and must be trimmed nightly.", "turn", "4"),
        ]
    )
    hits = recall.search("what fuel does the light need?", 2)
    assert hits[0].memory.text.startswith("The lamp burns whale oil")
    assert hits[0].likeness > 0.3
    assert all(first.likeness >= second.likeness for first, second in pairwise(hits))


def test_what_is_far_from_the_query_is_not_recalled(model: MiniLM) -> None:
    recall = Recall(model)
    recall.add([Memory("Grain is paid for in salt at the market.")])
    assert recall.search("quantum chromodynamics") == []


def test_recall_gives_what_there_is(model: MiniLM) -> None:
    recall = Recall(model)
    assert recall.search("anything") == []
    recall.add([Memory("You lit the lamp.", "turn", "1"), Memory("The lamp is old.", "lore", "lamp")])
    assert len(recall.search("the lamp", 9)) == 2
    assert recall.search("  ") == []


def test_the_best_of_ten_thousand_memories_are_found() -> None:
    recall = Recall(Scattered())
    recall.add(Memory(f"memory {number}") for number in range(10_000))
    hits = recall.search("memory 7777", 6)
    assert hits[0].memory.text == "memory 7777"
    assert hits[0].likeness == pytest.approx(1.0, abs=1e-5)


def test_memories_added_piecemeal_are_all_found() -> None:
    recall = Recall(Scattered())
    for number in range(600):
        recall.add([Memory(f"memory {number}")])
    assert len(recall) == 600
    for number in (0, 255, 256, 599):
        assert recall.search(f"memory {number}", 1)[0].memory.text == f"memory {number}"


# --- entries that fire ---------------------------------------------------------------------------------


def test_an_entry_fires_on_a_whole_word_whatever_its_case() -> None:
    entry = LoreEntry("He was a tyrant.", ("king",))
    assert entry.fires("who was the KING?", {})
    assert not entry.fires("I am looking around", {})
    assert not LoreEntry("x", ("King",), case_sensitive=True).fires("the king", {})


def test_a_keyword_in_a_script_without_spaces_is_found_inside_a_sentence() -> None:
    assert LoreEntry("灯台の話。", ("灯台",)).fires("あの灯台はどこ", {})


def test_a_keyword_full_of_signs_is_no_expression() -> None:
    assert LoreEntry("x", ("(a+)+$",)).fires("say (a+)+$ twice", {})
    start = time.perf_counter()
    assert not LoreEntry("x", ("(a+)+$",)).fires("a" * 5000 + "!", {})
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("logic", "fires_with_one", "fires_with_none"),
    [("any", True, False), ("all", False, False), ("not_any", False, True), ("not_all", True, True)],
)
def test_the_second_test_is_read_by_its_logic(
    logic: str, fires_with_one: bool, fires_with_none: bool
) -> None:
    entry = LoreEntry("x", ("door",), ("red", "old"), logic)  # type: ignore[arg-type]
    assert entry.fires("the red door", {}) is fires_with_one
    assert entry.fires("the door", {}) is fires_with_none


def test_state_decides_together_with_the_keyword() -> None:
    entry = LoreEntry("The lamp is dark.", ("lamp",), when=condition({"lamp": {"lit": False}}))
    assert entry.fires("look at the lamp", {"lamp": {"lit": False}})
    assert not entry.fires("look at the lamp", {"lamp": {"lit": True}})
    assert not entry.fires("look around", {"lamp": {"lit": False}})


def test_state_alone_is_enough_where_no_keyword_is_given() -> None:
    entry = LoreEntry("You are starving.", when=condition({"food": {"at_most": 0}}))
    assert entry.fires("anything", {"food": 0})
    assert not entry.fires("anything", {"food": 3})


def test_an_entry_with_neither_never_fires_unless_it_always_does() -> None:
    assert not LoreEntry("x").fires("x", {})
    assert LoreEntry("x", always=True).fires("", {})


# --- lore files ----------------------------------------------------------------------------------------


def test_a_file_is_split_by_paragraph_and_a_heading_goes_with_what_follows() -> None:
    memories, entries = read_lore("town", "# The market\n\nSalt is money.\n\nBread is dear.\n", words)
    assert [memory.text for memory in memories] == [
        "The market: Salt is money.",
        "The market: Bread is dear.",
    ]
    assert entries == []


def test_no_piece_is_longer_than_the_model_can_read(model: MiniLM) -> None:
    text = "The sea took the house, the boat and the road. " * 200 + "unbroken" * 2000
    pieces = split_lore(text, model.count_tokens)
    assert len(pieces) > 3
    assert all(model.count_tokens(piece) <= 510 for piece in pieces)
    assert sum(piece.count("The sea took") for piece in pieces) == 200


def test_front_matter_says_when_a_file_fires() -> None:
    text = (
        '+++\nkeywords = ["lamp"]\nwhen = { lamp.lit = false }\norder = 5\n+++\nIt is dark.\n\nIt is cold.\n'
    )
    memories, entries = read_lore("lamp", text, words)
    assert memories == []
    assert [(entry.text, entry.order, entry.name) for entry in entries] == [
        ("It is dark.", 5, "lamp"),
        ("It is cold.", 5, "lamp"),
    ]
    assert entries[0].fires("the lamp", {})
    assert not entries[0].fires("the lamp", {"lamp": {"lit": True}})


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("keywords = [", "not TOML"),
        ('keyword = ["lamp"]', "'keyword': unknown key; did you mean 'keywords'"),
        ('keywords = "lamp"', "'keywords': expected array"),
        ('logic = "some"', "'logic'"),
        ("when = { lamp = { at_least = 'two' } }", "'when'"),
    ],
)
def test_a_mistake_in_front_matter_names_the_file_and_the_key(header: str, complaint: str) -> None:
    with pytest.raises(LoreInvalid, match=complaint) as caught:
        read_lore("cellar", f"+++\n{header}\n+++\ntext", words)
    assert "cellar" in str(caught.value)


# --- together ------------------------------------------------------------------------------------------


def test_what_does_not_stand_is_not_near(model: MiniLM) -> None:
    memory = StoryMemory(model, model.count_tokens)
    memory.add_lore(
        {
            "lamp": '+++\nkeywords = ["lamp"]\n+++\nThe lamp eats whale oil.',
            "oil": "Oil is kept in the cellar.\n\nThe gulls scream all night.",
        }
    )
    memory.add("character", "Ines", "She keeps the keys of the oil cellar.", named="Ines")
    memory.add("turn", "3", "You asked Ines for oil → She refused.")
    near = [one.text for one in memory.near("fetch oil for the lamp", 4, lambda one: one.kind != "turn")]
    assert "Oil is kept in the cellar." in near
    assert "The lamp eats whale oil." not in near  # it fires, and needs no model
    assert not any("She refused" in text for text in near)
