"""The decoder: strict, bounded, and clear about whose fault it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR
from narratoria.events import Done, Log, StatePatch, ToolEvent, encode
from narratoria.kinds.ndjson import Decoder, Limits, ProtocolFailure

DONE = b'{"version":"0","type":"done","ok":true}\n'


def log(text: str = "x") -> bytes:
    return encode(Log(version="0", level="info", message=text)) + b"\n"


def fault(data: bytes, limits: Limits | None = None) -> ProtocolFailure:
    """The failure that `data` causes, whole or byte by byte: it must be the same."""
    failures = []
    for step in (len(data), 1) if len(data) < 2000 else (len(data),):
        decoder = Decoder("bad-tool", limits or Limits())
        events: list[ToolEvent] = []
        with pytest.raises(ProtocolFailure) as caught:
            for at in range(0, len(data), step):
                events += decoder.feed(data[at : at + step])
            decoder.close()
        failures.append((caught.value, events + caught.value.events))
    first, last = failures[0], failures[-1]
    assert str(first[0]) == str(last[0]) and first[1] == last[1]
    return first[0]


def test_every_event_type_is_decoded_in_order() -> None:
    lines = [
        {"type": "log", "level": "warn", "message": "m", "fields": {"a": [1, None]}},
        {"type": "state_patch", "patch": {"a": {"b": None}}},
        {"type": "asset", "assetId": "i", "kind": "image", "mediaType": "image/png", "path": "/x.png"},
        {"type": "ui_event", "event": "narrative_choice", "payload": {"choices": ["a"]}},
        {"type": "error", "errorCode": "E", "errorMessage": "m"},
        {"type": "done", "ok": True, "summary": "s"},
    ]
    data = b"".join(json.dumps({"version": "0", **line}).encode() + b"\n" for line in lines)
    decoder = Decoder("t")
    events = decoder.feed(data)
    assert [e.__struct_config__.tag for e in events] == [line["type"] for line in lines]
    assert decoder.done is events[-1]
    assert decoder.lines == 6


def test_unknown_fields_are_ignored_also_when_nested_and_not_ascii() -> None:
    line = '{"version":"0","type":"done","ok":true,"später":{"a":[{"b":"ü:"}]},"n":1e999}\n'.encode()
    assert Decoder("t").feed(line) == [Done(version="0", ok=True)]


def test_blank_lines_are_skipped_and_counted() -> None:
    decoder = Decoder("t")
    assert len(decoder.feed(b"\n \n" + log() + b"\t\n")) == 1
    with pytest.raises(ProtocolFailure, match="line 5:"):
        decoder.feed(b"oops\n")


def test_crlf_is_tolerated_and_noted() -> None:
    decoder = Decoder("t")
    assert decoder.feed(DONE.replace(b"\n", b"\r\n")) == [Done(version="0", ok=True)]
    assert decoder.crlf
    plain = Decoder("t")
    plain.feed(DONE)
    assert not plain.crlf


def test_a_complete_last_line_needs_no_newline() -> None:
    decoder = Decoder("t")
    assert decoder.feed(DONE.rstrip()) == []
    assert decoder.close() == [Done(version="0", ok=True)]
    assert decoder.done is not None


def test_half_a_line_at_the_end_is_a_failure() -> None:
    failure = fault(log() + b'{"version":"0","type":"log","mess')
    assert failure.line == 2
    assert "ends in the middle of a line" in str(failure)


def test_a_last_line_without_newline_that_is_not_utf_8_is_a_protocol_failure() -> None:
    assert "is not UTF-8 at byte 18" in str(fault(b'{"version": "0", "\xff": 1}'))
    half_a_character = log("Grüße")[: log("Grüße").index(b"\xbc")]
    assert "ends in the middle of a line" in str(fault(half_a_character))


def test_after_done_nothing_is_parsed_only_counted() -> None:
    garbage = b"not json \xff\n" + DONE
    for cut in range(len(garbage)):
        decoder = Decoder("t")
        assert decoder.feed(DONE + garbage[:cut]) == [Done(version="0", ok=True)]
        assert decoder.feed(garbage[cut:]) == []
        assert decoder.close() == []
        assert decoder.after_done == len(garbage)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"hello world", "not a JSON object.*stderr"),
        (b"[1,2]", "not an object"),
        (b"null", "not an object"),
        (b'"text"', "not an object"),
        (b"\xef\xbb\xbf" + DONE.strip(), "byte order mark.*without a BOM"),
        (b'{"version":"0","type":"state_patch","patch":{"a":NaN}}', "NaN.*null"),
        (b'{"version":"0","type":"done","ok":true,"x":-Infinity}', "NaN and Infinity"),
        (b'{"version":"0","type":"log","level":"info","message":"\xff"}', "not UTF-8 at byte 54"),
        (b'{"version":"0","type":"done","ok":true,"ignored":"\xc3\x28"}', "not UTF-8"),
        (b'{"version":"0","type":"done","ok":true,"ignored":"\xed\xa0\x80"}', "not UTF-8"),
        (b"\x00\x01\x02", "binary"),
        (b"{'version': '0'}", "json.dumps"),
        (b"{", "one line, without indentation"),
        (DONE.strip() + b" " + DONE.strip(), "more than one JSON value"),
        (b'{"version":"0","type":"finished"}', "unknown type 'finished'"),
        (b'{"version":"0","type":"statepatch","patch":{}}', "did you mean 'state_patch'"),
        (b'{"version":"0","type":7}', "unknown type '7'"),
        (b'{"version":"0"}', "has no `type`"),
        (b'{"version":0,"type":"done","ok":true}', 'add "version": "0"'),
        (b'{"version":"1","type":"done","ok":true}', "version"),
        (b'{"type":"done","ok":true}', "version"),
        (b'{"version":"0","type":"done"}', "`ok`"),
        (b'{"version":"0","type":"done","ok":1}', r"\$.ok.*fix: `ok` must be true or false"),
        (b'{"version":"0","type":"log","level":"loud","message":""}', r"\$.level.*debug, info, warn, error"),
        (b'{"version":"0","type":"log","level":"info"}', "fix: add `message`"),
        (b'{"version":"0","type":"log","level":"info","message":7}', "`message` must be a string"),
        (b'{"version":"0","type":"state_patch","patch":{"a":1e999}}', "number out of range in `patch`"),
        (
            b'{"version":"0","type":"state_patch","patch":{"a":' + b"9" * 6000 + b"}}",
            "larger ones as strings",
        ),
        (
            rb'{"version":"0","type":"log","level":"info","message":"a\ud83db"}',
            r"\\ud83d is half of a surrog",
        ),
        (
            rb'{"version":"0","type":"log","level":"info","message":"a\ude00b"}',
            r"\\ude00 is half of a surrog",
        ),
        (DONE.decode().strip().encode("utf-16-le"), "UTF-16, not UTF-8.*encode as UTF-8"),
        (b"\xff\xfe" + DONE.decode().strip().encode("utf-16-le"), "UTF-16.*encode as UTF-8"),
        (b'{"version":"0","type":"state_patch","patch":[]}', r"\$.patch"),
        (b'{"version":"0","type":"log","level":"info","message":"a\x01b"}', "not valid JSON"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_bytes_and_fix(line: bytes, says: str) -> None:
    failure = fault(log("before") + line + b"\n" + log("after"))
    assert failure.code == PROTOCOL_ERROR
    assert failure.line == 2
    assert failure.fix
    assert failure.excerpt == line[:160]
    assert str(failure).startswith("bad-tool: line 2: ")
    import re

    assert re.search(says, str(failure)), str(failure)


@pytest.mark.parametrize(
    "line",
    [
        b'{"version":"0","type":"done","ok":true,"ok":false}',
        b'{"version":"0","type":"done","ok" :true,"ok"\t:false}',
        b'{"version":"0","type":"state_patch","patch":{"a":1,"a":2}}',
        b'{"version":"0","type":"state_patch","patch":{"a":{"b":[{"c":1,"c":1}]}}}',
        b'{"version":"0","type":"state_patch","patch":{"a":1,"\\u0061":2}}',
        b'{"version":"0","type":"state_patch","patch":{"a":"\\u003a","a":2}}',
        b'{"version":"0","type":"state_patch","patch":{"a":"\\u003A","a":2}}',
        b'{"version":"0","type":"state_patch","patch":{"a":"::","a":2}}',
        b'{"version":"0","type":"done","ok":true,"ignored":{"x":1,"x":1}}',
        b'{"version":"0","type":"done","ok":true,"ignored":1,"ignored":2}',
        b'{"version":"0","type":"done","ok":true,"summary":null,"summary":null}',
        b'{"version":"0","type":"done","type":"done","ok":true}',
    ],
)
def test_a_duplicate_key_at_any_depth_is_refused(line: bytes) -> None:
    assert "appears twice" in str(fault(line + b"\n"))
    assert "appears twice" in str(fault(log() * 3 + line + b"\n"))


def test_colons_in_strings_and_explicit_nulls_are_not_duplicates() -> None:
    line = b'{"version":"0","type":"log","level":"info","message":"a: \\"b\\": \\u003a",'
    line += b'"requestId":null,"z":{":":1}}\n'
    (event,) = Decoder("t").feed(line)
    assert isinstance(event, Log) and event.message == 'a: "b": :'


def test_a_hundred_thousand_brackets_are_refused_wherever_they_stand() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    for line in (
        deep,
        b'{"version":"0","type":"done","ok":true,"ignored":' + deep + b"}",
        b'{"version":"0","type":"state_patch","patch":{"a":' + deep + b"}}",
    ):
        failure = fault(line + b"\n")
        assert failure.code == PROTOCOL_ERROR
        assert len(str(failure)) < 1000
    assert "nested too deeply" in str(failure)


def test_the_message_is_short_and_safe_on_a_terminal() -> None:
    failure = fault(b"\x1b[2J" + b"x" * 100_000 + b"\n")
    assert "\x1b" not in str(failure) and "\\x1b" in str(failure)
    assert len(str(failure)) < 1000
    assert "100,004 bytes" in str(failure)


@pytest.mark.parametrize("field", ["level", "version", "type", "twice"])
def test_a_long_value_is_not_quoted_whole(field: str) -> None:
    line = {"version": "0", "type": "log", "level": "info", "message": "m", field: "\x1b" + "x" * 900_000}
    text = json.dumps(line)
    if field == "twice":
        text = '{"' + "x" * 900_000 + '":1,"' + "x" * 900_000 + '":2,' + text[1:]
    message = str(fault(text.encode() + b"\n"))
    assert len(message) < 1_000 and message.isprintable()


def test_a_line_without_end_is_cut_off_at_the_limit() -> None:
    decoder = Decoder("t", Limits(max_line_bytes=1000))
    decoder.feed(b"x" * 1000)
    with pytest.raises(ProtocolFailure, match="longer than 1,000 bytes") as caught:
        decoder.feed(b"x")
    assert caught.value.code == OUTPUT_LIMIT


def test_a_long_line_among_short_ones_is_found() -> None:
    failure = fault(log() + log("y" * 300) + log(), Limits(max_line_bytes=200))
    assert (failure.code, failure.line) == (OUTPUT_LIMIT, 2)


def test_the_number_of_events_is_limited_and_those_within_are_kept() -> None:
    decoder = Decoder("t", Limits(max_events=10))
    with pytest.raises(ProtocolFailure, match="more than 10 events") as caught:
        decoder.feed(log() * 100)
    assert caught.value.code == OUTPUT_LIMIT
    assert len(caught.value.events) == 10


def test_the_number_of_values_is_limited_however_they_are_written() -> None:
    line = b'{"version":"0","type":"state_patch","patch":{"a":[%s]}}\n'
    for content in (b",".join([b"1"] * 200), b",".join([b"[]"] * 200), b"[" * 50 + b"]" * 50 + b",{}" * 200):
        failure = fault(log() + line % content, Limits(max_values=150))
        assert (failure.code, failure.line) == (OUTPUT_LIMIT, 2)
        assert "more than 150 values" in str(failure)
    assert len(Decoder("t", Limits(max_values=1000)).feed(log() * 250)) == 250
    assert "more than 1,000 values" in str(fault(log() * 260, Limits(max_values=1000)))


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"":', b"}]")])
def test_a_hundred_levels_are_taken_and_one_more_is_not(opening: bytes, closing: bytes) -> None:
    each = opening.count(b"[") + opening.count(b"{")
    line = b'{"version":"0","type":"state_patch","patch":{"x":"]]}}[[","a":%s}}\n'
    for levels, taken in ((98 // each, True), (98 // each + 1, False)):
        data = line % (opening * levels + b"1" + closing * levels)
        if taken:
            assert len(Decoder("t").feed(data)) == 1
        else:
            assert "nested too deeply (more than 100 levels)" in str(fault(data))
            assert "nested too deeply" in str(fault(log() + data + log()))


def test_the_number_of_bytes_is_limited_blank_lines_included() -> None:
    decoder = Decoder("t", Limits(max_bytes=1000))
    decoder.feed(b"\n" * 1000)
    with pytest.raises(ProtocolFailure, match="more than 1,000 bytes") as caught:
        decoder.feed(b"\n")
    assert caught.value.code == OUTPUT_LIMIT


def test_done_within_the_byte_limit_stands_even_if_more_follows() -> None:
    decoder = Decoder("t", Limits(max_bytes=len(DONE)))
    assert decoder.feed(DONE + b"x" * 50) == [Done(version="0", ok=True)]
    assert decoder.after_done == 50


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PATCHES = st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4), max_size=6)


@given(PATCHES, st.lists(st.integers(1, 40), min_size=1, max_size=10), st.booleans(), st.booleans())
def test_events_do_not_depend_on_how_the_bytes_arrive(
    patches: list[dict[str, object]], sizes: list[int], ascii_only: bool, spaced: bool
) -> None:
    separators = (" , ", " : ") if spaced else (",", ":")
    data = b"".join(
        json.dumps(
            {"version": "0", "type": "state_patch", "patch": patch},
            ensure_ascii=ascii_only,
            separators=separators,
        ).encode()
        + b"\n"
        for patch in patches
    )
    decoder, events, at, turn = Decoder("t"), [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        events += decoder.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    events += decoder.close()
    assert events == [StatePatch(version="0", patch=patch) for patch in patches]


@given(st.binary(max_size=200))
def test_any_bytes_give_events_or_a_protocol_failure(data: bytes) -> None:
    decoder = Decoder("t")
    try:
        decoder.feed(data)
        decoder.close()
    except ProtocolFailure as failure:
        assert failure.code == PROTOCOL_ERROR
        assert str(failure).isprintable()
