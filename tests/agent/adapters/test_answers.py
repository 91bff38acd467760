"""Reading JSON out of what models write, whole and while it arrives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.agent.adapters.answers import TextOf, json_in
from narratoria.errors import ArgumentsInvalid

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("narrative"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    before=st.dictionaries(TEXTS.filter(lambda key: key != "narrative"), VALUES, max_size=3),
    text=TEXTS,
    after=st.dictionaries(TEXTS.filter(lambda key: key != "narrative"), VALUES, max_size=3),
    ascii_only=st.booleans(),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_the_text_is_the_same_however_the_stream_is_cut(
    before: dict[str, object], text: str, after: dict[str, object], ascii_only: bool, sizes: list[int]
) -> None:
    document = json.dumps({**before, "narrative": text, **after}, ensure_ascii=ascii_only)
    reader, heard, at = TextOf("narrative"), "", 0
    while at < len(document):
        size = sizes[at % len(sizes)]
        heard += reader.feed(document[at : at + size])
        at += size
    assert heard == text


def test_what_is_complete_is_heard_before_the_rest_arrives() -> None:
    reader = TextOf("narrative")
    assert reader.feed('{"narrative": "The la') == "The la"
    assert reader.feed("mp\\") == "mp"
    assert reader.feed('n"') == "\n"
    assert reader.done


def test_a_text_without_end_is_heard_only_up_to_the_limit() -> None:
    reader = TextOf("narrative", limit=10)
    assert reader.feed('{"narrative": "' + "x" * 100) == "x" * 10
    assert reader.feed("x" * 100) == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        '```json\n{"a": 1}\n```',
        '<think>so {hm}</think>{"a": 1}',
        'Here: {"a": 1}',
    ],
)
def test_thoughts_and_fences_around_an_object_do_not_count(text: str) -> None:
    assert json_in(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        '{"a": ',
        '{"a": NaN}',
        '{"a": 1} {"a": 2}',
        '{"a": 1} done',
        "[" * 9 + '{"a"',
        "{" * 99_999,
        '{"a": 1, "a": 2}',
        '{"a": [{"b": 1, "b": 1}]}',
    ],
)
def test_what_is_not_one_object_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ArgumentsInvalid):
        json_in(text)
