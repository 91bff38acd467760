"""Memory in four scopes (004 `MemoryManager`), and the drafts of it that calls work on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.events import MemoryChange
from narratoria.session import Session
from narratoria.session.memory import SCOPES, Memory, MemoryAccessError
from narratoria.session.memory_draft import MemoryDraft


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Memory:
    return Memory(clock)


def draft_of(base: Memory) -> tuple[MemoryDraft, list[MemoryChange]]:
    recorded: list[MemoryChange] = []
    return MemoryDraft(base, recorded.append), recorded


@pytest.mark.parametrize("scope", ["working", "short-term", "long-term"])
def test_what_is_written_in_a_scope_is_read_there_and_nowhere_else(memory: Memory, scope: str) -> None:
    memory.write(scope, "browser.error", True)
    assert memory.read(scope, "browser.error") is True
    assert [one for one in SCOPES if memory.has(one, "browser.error")] == [scope]


def test_reading_what_is_not_there_gives_the_default(memory: Memory) -> None:
    assert memory.read("working", "nothing") is None
    assert memory.read("working", "nothing", 7) == 7
    assert not memory.has("working", "nothing")


def test_a_remembered_null_is_there(memory: Memory) -> None:
    memory.write("working", "answer", None)
    assert memory.has("working", "answer")
    assert memory.read("working", "answer", "default") is None


def test_an_unknown_scope_is_refused_with_the_known_ones(memory: Memory) -> None:
    for act in (
        lambda: memory.read("mid-term", "x"),
        lambda: memory.write("mid-term", "x", 1),
        lambda: memory.clear("mid-term"),
        lambda: memory.search("mid-term", "x"),
    ):
        with pytest.raises(MemoryAccessError, match=r"'mid-term'.*working, short-term, long-term, episodic"):
            act()


def test_an_empty_key_is_refused(memory: Memory) -> None:
    with pytest.raises(MemoryAccessError, match="at least one character"):
        memory.write("working", "", 1)


def test_short_term_memory_is_forgotten_after_its_time_to_live(memory: Memory, clock: Clock) -> None:
    memory.write("short-term", "rumour", "dragons", ttl=10)
    memory.write("short-term", "weather", "rain")  # an hour by default
    clock.now += 9.9
    assert memory.read("short-term", "rumour") == "dragons"
    clock.now += 0.1
    assert memory.read("short-term", "rumour") is None
    assert memory.keys("short-term") == ["weather"]
    assert memory.search("short-term", "drag") == []
    clock.now += 3600
    assert memory.keys("short-term") == []


def test_expired_entries_do_not_pile_up(memory: Memory, clock: Clock) -> None:
    for number in range(100):
        memory.write("short-term", f"k{number}", number, ttl=1)
        clock.now += 2
    assert len(memory._scopes["short-term"]) == 1


def test_a_rewrite_starts_the_time_to_live_anew_and_an_update_does_not(memory: Memory, clock: Clock) -> None:
    for key in ("rewritten", "updated"):
        memory.write("short-term", key, {"n": 1}, ttl=10)
    clock.now += 9
    memory.write("short-term", "rewritten", {"n": 2}, ttl=10)
    memory.update("short-term", "updated", {"n": 2})
    clock.now += 2
    assert memory.read("short-term", "rewritten") == {"n": 2}
    assert memory.read("short-term", "updated") is None


def test_long_term_memory_has_no_time_to_live(memory: Memory) -> None:
    with pytest.raises(MemoryAccessError, match="use short-term"):
        memory.write("long-term", "name", "Ada", ttl=5)


@pytest.mark.parametrize("ttl", [0, -1, float("nan")])
def test_a_time_to_live_must_be_positive(memory: Memory, ttl: float) -> None:
    with pytest.raises(MemoryAccessError, match="more than 0"):
        memory.write("short-term", "x", 1, ttl=ttl)


def test_an_update_merges_objects_and_replaces_anything_else(memory: Memory) -> None:
    memory.write("long-term", "smith", {"mood": "grim", "debt": 3})
    assert memory.update("long-term", "smith", {"mood": "merry", "debt": None}) == {"mood": "merry"}
    assert memory.read("long-term", "smith") == {"mood": "merry"}
    memory.update("long-term", "smith", ["gone"])
    assert memory.read("long-term", "smith") == ["gone"]


def test_an_update_by_function_gets_the_present_value_or_none(memory: Memory) -> None:
    count: Callable[[int | None], int] = lambda present: (present or 0) + 1  # noqa: E731
    memory.update("working", "visits", count)
    memory.update("working", "visits", count)
    assert memory.read("working", "visits") == 2


def test_004_navigation_history_keeps_its_last_hundred_entries(memory: Memory) -> None:
    for number in range(120):
        history = memory.read("short-term", "browser.history") or []
        history.append({"url": f"/{number}"})
        memory.write("short-term", "browser.history", history[-100:])
    assert len(memory.read("short-term", "browser.history")) == 100
    assert memory.read("short-term", "browser.history")[-1] == {"url": "/119"}


def test_004_the_rate_limit_counter_goes_down_by_one(memory: Memory) -> None:
    memory.write("short-term", "api.rateLimit.remaining", 5)
    memory.update("short-term", "api.rateLimit.remaining", lambda remaining: remaining - 1)
    assert memory.read("short-term", "api.rateLimit.remaining") == 4


def test_delete_forgets_one_key_and_says_whether_it_was_there(memory: Memory) -> None:
    memory.write("working", "a", 1)
    assert memory.delete("working", "a") is True
    assert memory.delete("working", "a") is False
    assert not memory.has("working", "a")


def test_clear_empties_one_scope_only(memory: Memory) -> None:
    memory.write("working", "a", 1)
    memory.write("long-term", "a", 1)
    memory.clear("working")
    assert memory.keys("working") == []
    assert memory.keys("long-term") == ["a"]


def test_search_looks_in_keys_and_values_whatever_the_case_newest_first(memory: Memory) -> None:
    memory.write("long-term", "smith", {"likes": "Iron"})
    memory.write("long-term", "IRON door", "locked")
    memory.write("long-term", "baker", {"likes": "flour"})
    memory.write("long-term", "smith", {"likes": "iron and ale"})
    assert memory.search("long-term", "iron") == [
        ("smith", {"likes": "iron and ale"}),
        ("IRON door", "locked"),
    ]
    assert memory.search("long-term", "iron", limit=1) == [("smith", {"likes": "iron and ale"})]


def test_search_text_is_no_pattern_and_quotes_and_umlauts_are_found(memory: Memory) -> None:
    memory.write("long-term", "sign", 'it says "Äpfel [.*]"')
    assert memory.search("long-term", 'SAYS "äPFEL')
    assert memory.search("long-term", "[.*]")
    assert memory.search("long-term", "a.*z") == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": {1, 2}}, r"working/x\.a: set is not JSON"),
        ([1, object()], r"working/x\[1\]: object is not JSON"),
        ({1: 2}, "the key 1 is int"),
        (float("nan"), "not a JSON number"),
        (2**70, "more than 64 bits"),
        (b"bytes", "bytes is not JSON"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_value_that_is_not_json_is_refused_by_its_path(memory: Memory, value: object, says: str) -> None:
    with pytest.raises(MemoryAccessError, match=says):
        memory.write("working", "x", value)
    assert not memory.has("working", "x")


def test_a_value_that_holds_itself_is_refused(memory: Memory) -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(MemoryAccessError, match="deeper than 100"):
        memory.write("working", "x", loop)


def test_changing_what_was_handed_in_or_out_changes_no_memory(memory: Memory) -> None:
    mine = {"items": ["torch"]}
    memory.write("working", "bag", mine)
    mine["items"].append("rope")
    memory.read("working", "bag")["items"].append("lamp")
    memory.search("working", "bag")[0][1]["items"].append("lamp")
    assert memory.read("working", "bag") == {"items": ["torch"]}


def test_a_session_s_state_may_be_remembered_as_it_is_read(memory: Memory) -> None:
    session = Session(state={"inventory": {"torch": {"lit": True}, "coins": [1, 2]}})
    memory.write("long-term", "inventory", session.state["inventory"])
    assert memory.read("long-term", "inventory") == {"torch": {"lit": True}, "coins": [1, 2]}


# --- episodic --------------------------------------------------------------------------------------------


def test_episodes_are_appended_with_their_time_and_read_in_order(memory: Memory, clock: Clock) -> None:
    memory.write("episodic", "smith", "met")
    clock.now += 5
    memory.write("episodic", "smith", "quarrelled")
    assert memory.read("episodic", "smith") == [
        {"at": 1000.0, "value": "met"},
        {"at": 1005.0, "value": "quarrelled"},
    ]


def test_what_happened_is_not_updated_but_may_be_forgotten(memory: Memory) -> None:
    memory.write("episodic", "smith", "met")
    with pytest.raises(MemoryAccessError, match="write another entry"):
        memory.update("episodic", "smith", "never met")
    assert memory.delete("episodic", "smith")
    assert memory.read("episodic", "smith") is None


def test_two_calls_that_append_to_one_episode_at_once_both_stay(memory: Memory) -> None:
    (one, ones), (other, others) = draft_of(memory), draft_of(memory)
    one.write("episodic", "battle", "charge")
    other.write("episodic", "battle", "retreat")
    for change in [*others, *ones]:
        memory.apply(change)
    assert [entry["value"] for entry in memory.read("episodic", "battle")] == ["retreat", "charge"]


def test_taking_back_one_episode_leaves_those_after_it(memory: Memory) -> None:
    undo = memory.apply(
        MemoryChange(scope="episodic", op="write", key="b", value={"at": 1, "value": "first"})
    )
    memory.apply(MemoryChange(scope="episodic", op="write", key="b", value={"at": 2, "value": "second"}))
    for change in undo:
        memory.apply(change)
    assert memory.read("episodic", "b") == [{"at": 2, "value": "second"}]


# --- drafts ----------------------------------------------------------------------------------------------


def test_a_draft_sees_its_own_changes_and_the_base_sees_none_of_them(memory: Memory) -> None:
    memory.write("working", "kept", 1)
    memory.write("working", "dropped", 1)
    draft, recorded = draft_of(memory)
    draft.write("working", "new", 2)
    draft.update("working", "kept", lambda value: value + 1)
    draft.delete("working", "dropped")
    draft.write("episodic", "log", "x")
    assert draft.keys("working") == ["new", "kept"]
    assert draft.read("working", "kept") == 2
    assert not draft.has("working", "dropped")
    assert memory.export()["working"] == {"kept": {"value": 1}, "dropped": {"value": 1}}
    assert memory.keys("episodic") == []
    assert [change.op for change in recorded] == ["write", "write", "delete", "write"]


def test_a_sibling_s_commit_shows_through_a_draft_that_did_not_touch_the_key(memory: Memory) -> None:
    draft, _ = draft_of(memory)
    draft.write("working", "mine", 1)
    memory.write("working", "mine", 9)
    memory.write("working", "theirs", 2)
    assert draft.read("working", "theirs") == 2
    assert draft.read("working", "mine") == 1


def test_a_cleared_draft_shows_only_what_it_wrote_afterwards(memory: Memory) -> None:
    memory.write("working", "old", 1)
    draft, recorded = draft_of(memory)
    draft.write("working", "before", 1)
    draft.clear("working")
    draft.write("working", "after", 1)
    assert draft.keys("working") == ["after"]
    assert draft.search("working", "") == [("after", 1)]
    for change in recorded:
        memory.apply(change)
    assert memory.keys("working") == ["after"]


def test_a_nested_draft_reads_through_both_and_commits_into_the_outer_one(memory: Memory) -> None:
    memory.write("working", "base", 0)
    outer, _ = draft_of(memory)
    outer.write("working", "outer", 1)
    inner, recorded = draft_of(outer)
    inner.write("working", "inner", 2)
    inner.delete("working", "outer")
    assert inner.keys("working") == ["base", "inner"]
    assert outer.keys("working") == ["base", "outer"]
    for change in recorded:
        outer.apply(change)
    assert outer.keys("working") == ["base", "inner"]
    assert memory.keys("working") == ["base"]


def test_the_order_of_a_draft_s_keys_is_the_order_after_its_commit(memory: Memory) -> None:
    for key in "abc":
        memory.write("working", key, 0)
    draft, recorded = draft_of(memory)
    for key in "adb":
        draft.write("working", key, 1)
    seen = draft.keys("working")
    for change in recorded:
        memory.apply(change)
    assert memory.keys("working") == seen == ["c", "a", "d", "b"]


def test_a_draft_forgets_what_expires_while_it_is_open(memory: Memory, clock: Clock) -> None:
    memory.write("short-term", "base", 1, ttl=5)
    draft, _ = draft_of(memory)
    draft.write("short-term", "mine", 1, ttl=5)
    clock.now += 6
    assert draft.keys("short-term") == []


def test_an_unused_draft_costs_no_copy_of_what_is_remembered(memory: Memory) -> None:
    draft, _ = draft_of(memory)
    assert draft._overlay is None


# --- keeping and undoing ---------------------------------------------------------------------------------


def test_an_export_loads_into_the_same_memory(memory: Memory, clock: Clock) -> None:
    memory.write("working", "b", {"x": [1, None]})
    memory.write("working", "a", 1)
    memory.write("short-term", "soon", 1, ttl=60)
    memory.write("episodic", "e", "happened")
    other = Memory(clock)
    other.write("working", "gone", 1)
    other.load(memory.export())
    assert other.export() == memory.export()
    assert other.keys("working") == ["b", "a"]
    clock.now += 61
    assert not other.has("short-term", "soon")


def test_a_load_of_something_else_is_refused_and_changes_nothing(memory: Memory) -> None:
    memory.write("working", "a", 1)
    for bad in ({"dreams": {}}, {"working": []}, {"working": {"a": {"expires": 1}}}):
        with pytest.raises(MemoryAccessError, match="cannot be loaded"):
            memory.load(bad)
    assert memory.keys("working") == ["a"]


keys = st.sampled_from(["a", "b"])
values = st.integers() | st.none() | st.lists(st.booleans(), max_size=2)
changes = st.one_of(
    st.builds(MemoryChange, scope=st.just("working"), op=st.just("write"), key=keys, value=st.integers(0, 9)),
    st.builds(MemoryChange, scope=st.just("working"), op=st.just("delete"), key=keys),
    st.builds(
        MemoryChange,
        scope=st.just("episodic"),
        op=st.just("write"),
        key=keys,
        value=st.builds(lambda number: {"at": 0, "value": number}, st.integers(0, 3)),
    ),
    st.builds(MemoryChange, scope=st.just("episodic"), op=st.just("delete"), key=keys),
    st.builds(MemoryChange, scope=st.sampled_from(["working", "episodic"]), op=st.just("clear")),
)


@given(st.lists(changes, max_size=12))
def test_the_inverses_in_reverse_order_take_everything_back(sequence: list[MemoryChange]) -> None:
    memory = Memory(lambda: 0.0)
    memory.write("working", "a", "original")
    memory.write("episodic", "b", "original")
    before = memory.export()
    inverses = [memory.apply(change) for change in sequence]
    for inverse in reversed(inverses):
        for change in inverse:
            memory.apply(change)
    assert memory.export() == before


@given(st.lists(changes, max_size=12), st.lists(changes, max_size=12))
def test_a_draft_shows_what_its_commit_will_make(first: list[MemoryChange], then: list[MemoryChange]) -> None:
    memory = Memory(lambda: 0.0)
    for change in first:
        memory.apply(change)
    draft, _ = draft_of(memory)
    for change in then:
        draft.apply(change)
    seen = draft.export()
    for change in then:
        memory.apply(change)
    assert seen == memory.export()
