"""RFC 7396 and 000 §4.2: merging, comparing, looking up, and undoing without copying."""

import copy
import json

import json_merge_patch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.state import (
    StateError,
    StateView,
    apply,
    change_to_patch,
    compose,
    copy_patch,
    diff,
    lookup,
    merge,
    merge_into,
    patch_at,
    plain,
    revert,
)

leaves = st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=3)
arrays = st.lists(
    leaves | st.none() | st.dictionaries(st.text("ab", max_size=1), st.none() | leaves), max_size=3
)
keys = st.text("abcd.", min_size=0, max_size=2)


def objects(values):
    return st.dictionaries(keys, values, max_size=4)


states = objects(st.recursive(leaves | arrays, objects, max_leaves=12))
patches = objects(st.recursive(leaves | arrays | st.none(), objects, max_leaves=12))


def crowded(leaf):
    """Objects with so few keys that what follows on each other nearly always meets."""
    return st.recursive(
        st.dictionaries(st.sampled_from("ab"), leaf, max_size=2),
        lambda inner: st.dictionaries(st.sampled_from("ab"), leaf | inner, max_size=2),
        max_leaves=6,
    )


crowded_states = crowded(st.integers(0, 3))
crowded_patches = st.lists(crowded(st.integers(0, 3) | st.none()), max_size=6)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_rfc_7396_appendix_a(target, patch, result):
    assert merge(target, patch) == result


def test_the_example_of_000_section_4_2():
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"c": 3, "d": 4}}) == {"a": {"b": 1, "c": 3, "d": 4}}


@given(states, patches)
def test_merge_agrees_with_an_independent_implementation(state, patch):
    assert merge(state, patch) == json_merge_patch.merge(copy.deepcopy(state), copy.deepcopy(patch))


@given(states, patches)
def test_merge_changes_neither_argument(state, patch):
    before = json.dumps([state, patch])
    merge(state, patch)
    assert json.dumps([state, patch]) == before


@given(states, patches)
def test_apply_in_place_gives_what_merge_gives_and_its_inverse_takes_it_back(state, patch):
    tree = copy.deepcopy(state)
    inverse = apply(tree, patch)
    assert tree == merge(state, patch)
    assert merge(tree, inverse) == state, "the inverse is itself a merge patch"
    revert(tree, inverse)
    assert tree == state


@given(crowded_states, crowded_patches)
def test_one_inverse_takes_back_patches_that_were_applied_one_after_another(state, sequence):
    tree, expected, inverse = copy.deepcopy(state), state, {}
    for patch in sequence:
        apply(tree, patch, inverse)
        expected = merge(expected, patch)
    assert tree == expected
    assert merge(tree, inverse) == state
    revert(tree, inverse)
    assert tree == state


@given(crowded_states, crowded_patches)
def test_patches_that_can_be_composed_do_at_once_what_they_do_one_by_one(state, sequence):
    runs: list[dict] = []
    before = copy.deepcopy(sequence)
    for patch in sequence:
        if not runs or not compose(runs[-1], patch):
            runs.append(copy_patch(patch))
    one_by_one = at_once = state
    for patch in sequence:
        one_by_one = merge(one_by_one, patch)
    for patch in runs:
        at_once = merge(at_once, patch)
    assert one_by_one == at_once
    assert sequence == before


def test_an_object_in_place_of_what_was_set_or_removed_is_not_composed():
    for earlier in (None, 1, [1]):
        first = {"a": earlier}
        assert not compose(first, {"a": {"b": 1}})
        assert first == {"a": earlier}
    first = {"a": {"b": None}, "c": 1}
    assert compose(first, {"a": {"d": 2}, "c": None, "e": {"f": None}})
    assert first == {"a": {"b": None, "d": 2}, "c": None, "e": {"f": None}}


@given(states, patches, patches)
def test_a_patch_that_was_applied_is_never_changed_by_a_later_one(state, first, second):
    kept = copy.deepcopy(first)
    tree = copy.deepcopy(state)
    apply(tree, first)
    apply(tree, second)
    assert first == kept


@given(states, states)
def test_diff_leads_from_one_state_to_the_other(before, after):
    assert merge(before, diff(before, after)) == after


@given(states)
def test_diff_of_equal_states_is_empty(state):
    assert diff(state, copy.deepcopy(state)) == {}


def test_diff_tells_true_from_one_and_one_from_one_point_zero():
    assert diff({"a": 1, "b": [1]}, {"a": True, "b": [1.0]}) == {"a": True, "b": [1.0]}


@given(states, st.lists(patches, max_size=4))
def test_a_view_with_layers_shows_what_merging_them_would_give(state, layers):
    merged = state
    for layer in layers:
        merged = merge(merged, layer)
    view = StateView(state, layers)
    assert plain(view) == merged
    assert view == merged
    assert list(view) == [key for key in view if key in merged]
    assert len(view) == len(merged)


def test_a_view_cannot_be_written_through():
    tree = {"a": {"b": [1, {"c": 2}]}}
    view = StateView(tree)
    for refused in (
        lambda: view.__setitem__("x", 1),
        lambda: view["a"].update(b=1),
        lambda: view["a"]["b"].append(3),
        lambda: view["a"]["b"][1].pop("c"),
    ):
        with pytest.raises(AttributeError):
            refused()
    assert tree == {"a": {"b": [1, {"c": 2}]}}
    assert view["a"]["b"] == [1, {"c": 2}]


def test_lookup_walks_objects_and_arrays_and_falls_back():
    data = {"inventory": {"torch": {"lit": True}}, "log": [{"line": 1}], "a.b": 2}
    assert lookup(data, "inventory.torch.lit") is True
    assert lookup(data, "log.0.line") == 1
    assert lookup(data, ["a.b"]) == 2
    assert lookup(data, "inventory.lamp.lit", "no") == "no"
    assert lookup(data, "log.x", "no") == "no"
    assert lookup(data, "inventory.torch.lit.deeper", "no") == "no"


@pytest.mark.parametrize(
    "index", ["\uff11", " 1", "1 ", "00", "01", "1_0", "+1", "-1", "-0", "", "1.0", -1, "9" * 5_000]
)
def test_only_a_plain_number_names_an_element_of_an_array(index):
    data = {"list": [*range(20)]}
    assert lookup(data, ["list", index], "no") == "no"
    assert lookup(data, "list.10") == lookup(data, ["list", 10]) == lookup(data, ["list", "10"]) == 10


def test_state_changes_become_patches():
    state = {"hits": 2}
    assert change_to_patch(state, "hits", "increment") == {"hits": 3}
    assert change_to_patch(state, "hits", "decrement", 2) == {"hits": 0}
    assert change_to_patch(state, "new.count", "increment", 5) == {"new": {"count": 5}}
    assert change_to_patch(state, "a.b", "set", [1]) == {"a": {"b": [1]}}
    assert change_to_patch(state, "a.b", "clear") == {"a": {"b": None}}
    with pytest.raises(StateError, match="cannot increment 'name'"):
        change_to_patch({"name": "x"}, "name", "increment")
    with pytest.raises(StateError, match="cannot increment 'flag'"):
        change_to_patch({"flag": True}, "flag", "increment")


def test_a_patch_needs_a_path():
    with pytest.raises(StateError):
        patch_at([], 1)


def test_wide_flat_objects_are_not_copied_by_a_change_or_its_undo():
    wide = {str(number): number for number in range(1000)}
    tree = {"wide": wide}
    inverse = apply(tree, {"wide": {"5": None, "new": 1}})
    assert tree["wide"] is wide
    assert inverse == {"wide": {"5": 5, "new": None}}
    revert(tree, inverse)
    assert tree["wide"] is wide and wide["5"] == 5 and "new" not in wide


@given(states, patches, patches)
def test_merging_in_place_gives_what_merging_gives_and_leaves_the_patches_alone(state, first, second):
    expected = merge(merge(state, first), second)
    target, kept = copy.deepcopy(state), copy.deepcopy((first, second))
    merge_into(target, first)
    merge_into(target, second)
    assert target == expected and (first, second) == kept
