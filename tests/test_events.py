"""The events of the protocol and the runtime's own: one tagged family, strict on what is known."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria import events
from narratoria.events import (
    TOOL_EVENT_TYPES,
    AnyRuntimeEvent,
    CallEmitted,
    Committed,
    Done,
    Log,
    PatchChange,
    ToolEvent,
    decode_tool_event,
    encode,
)

# 000 §4, literally: every field of every event.
WHOLE: dict[str, dict[str, Any]] = {
    "log": {"level": "info", "message": "m", "fields": {"progress": 0.5}},
    "state_patch": {"patch": {"a": {"b": None}}},
    "asset": {"assetId": "a", "kind": "image", "mediaType": "image/png", "path": "/x", "metadata": {"w": 1}},
    "ui_event": {"event": "narrative_choice", "payload": {"choices": ["Open", "Leave"]}},
    "error": {"errorCode": "E", "errorMessage": "m", "details": {"x": 1}},
    "done": {"ok": True, "summary": "s"},
}
OPTIONAL = {"fields", "metadata", "payload", "details", "summary"}
WRONG: dict[str, Any] = {
    "level": "fatal", "message": 5, "fields": [], "patch": [], "assetId": None, "kind": 1, "mediaType": 1,
    "path": None, "metadata": "x", "event": None, "payload": [], "errorCode": 404, "errorMessage": None,
    "details": "x", "ok": 1, "summary": 1,
}  # fmt: skip
CASES = [(kind, field) for kind, fields in WHOLE.items() for field in fields]


def whole(kind: str) -> dict[str, Any]:
    return {"version": "0", "type": kind, **WHOLE[kind]}


def decode(event: dict[str, Any]) -> ToolEvent:
    return decode_tool_event(json.dumps(event))


@pytest.mark.parametrize("kind", WHOLE)
def test_an_event_comes_back_as_it_was_written(kind: str) -> None:
    written = {**whole(kind), "requestId": "r", "timestamp": "2026-01-24T18:00:00Z"}
    assert json.loads(encode(decode(written))) == written


@pytest.mark.parametrize(("kind", "field"), CASES)
def test_required_fields_are_required_and_optional_ones_are_not(kind: str, field: str) -> None:
    event = whole(kind)
    del event[field]
    if field in OPTIONAL:
        decode(event)
    else:
        with pytest.raises(msgspec.ValidationError, match=field):
            decode(event)


@pytest.mark.parametrize(("kind", "field"), CASES)
def test_a_field_of_the_wrong_type_is_refused_by_name(kind: str, field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        decode({**whole(kind), field: WRONG[field]})


@pytest.mark.parametrize("kind", WHOLE)
def test_unknown_fields_are_ignored(kind: str) -> None:
    """001 §8: ignore unknown fields within known event types."""
    assert decode({**whole(kind), "colour": {"of": "magic"}}) == decode(whole(kind))


@pytest.mark.parametrize("kind", ["logs", "DONE", "", None, 5, "call_started", "session_started"])
def test_an_unknown_type_is_refused_and_a_tool_cannot_speak_for_the_runtime(kind: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode({"version": "0", "type": kind, "ok": True})


@pytest.mark.parametrize("version", ["1", "0.0.1", 0, None, ""])
def test_only_version_0_is_spoken(version: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="version"):
        decode({"version": version, "type": "done", "ok": True})


def test_there_are_six_types_and_their_names_are_the_seeds() -> None:
    tags = [one.__struct_config__.tag for one in get_args(ToolEvent)]
    assert tuple(tags) == TOOL_EVENT_TYPES == tuple(WHOLE)


def test_every_event_of_the_runtime_is_in_the_union_and_no_tag_is_used_twice() -> None:
    members = get_args(AnyRuntimeEvent)
    defined = [
        one
        for one in vars(events).values()
        if isinstance(one, type) and issubclass(one, events.RuntimeEvent) and one is not events.RuntimeEvent
    ]
    assert set(members) == set(defined)
    tags = [one.__struct_config__.tag for one in members]
    assert len(set(tags)) == len(tags)


def test_a_record_that_carries_a_tool_event_comes_back_with_it() -> None:
    event = CallEmitted(call="c", event=Log(version="0", level="warn", message="m"))
    assert msgspec.json.decode(encode(event), type=AnyRuntimeEvent) == event


def test_a_commit_keeps_references_and_changes_in_order() -> None:
    event = Committed(call="c", changes=[3, PatchChange({"a": None}), 5], inverse=[PatchChange({"a": 1})])
    assert msgspec.json.decode(encode(event), type=AnyRuntimeEvent) == event


def test_events_cannot_be_changed_after_the_fact() -> None:
    done = Done(version="0", ok=True)
    with pytest.raises(AttributeError):
        done.ok = False  # type: ignore[misc]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=4), st.text())
def test_any_patch_and_any_text_survive_the_wire(patch: dict[str, Any], text: str) -> None:
    sent = {"version": "0", "type": "state_patch", "patch": patch, "requestId": text}
    assert json.loads(encode(decode(sent))) == sent
