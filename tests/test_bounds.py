"""Documents that somebody else wrote are measured before they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from narratoria.bounds import OutOfBounds, check_depth, decode_json, read_file
from narratoria.errors import JournalError, StoryInvalid
from narratoria.lore.entries import LoreInvalid, front_matter
from narratoria.session.media import is_media_type
from narratoria.store import record_batches as chunks
from narratoria.toml_lines import read_toml


@pytest.mark.parametrize(
    "text", [b'{"a":' * 101 + b"1" + b"}" * 101, b"[" * 200_000, b"[" + b"[]," * 2_000_000 + b"[]]"]
)
def test_what_would_fill_the_memory_or_the_stack_is_not_decoded(text: bytes) -> None:
    with pytest.raises(OutOfBounds):
        decode_json(text)


def test_what_tools_may_send_is_decoded() -> None:
    assert decode_json(b"[" * 100 + b'"[[[[{{{{"' + b"]" * 100)
    check_depth(decode_json(b"[" * 100 + b"]" * 100))
    with pytest.raises(OutOfBounds):
        check_depth({"a": decode_json(b"[" * 100 + b"]" * 100)}, 100)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(b"x" * 10)
    assert read_file(path, 10) == b"x" * 10
    with pytest.raises(OutOfBounds, match="more than the 9 bytes"):
        read_file(path, 9)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a" + ".a" * 20_000 + " = 1"])
def test_the_toml_of_a_story_is_bounded(tmp_path: Path, text: str) -> None:
    path = tmp_path / "story.toml"
    path.write_text(text)
    with pytest.raises(StoryInvalid, match=r"story\.toml:1: "):
        read_toml(path)
    with pytest.raises(LoreInvalid):
        front_matter("cellar", f"+++\n{text}\n+++\nDark.")


@pytest.mark.parametrize("line", [b'{"seq":1,"ts":1,"turn":null,"event":"\xff"}\n', b"[" * 100_000 + b"\n"])
def test_a_batch_that_is_no_text_is_damaged(line: bytes) -> None:
    with pytest.raises(JournalError, match="is damaged"):
        chunks.read_records(chunks.pack(line), "a batch")


@pytest.mark.parametrize(
    "parameter", ['name="a\r\nSet-Cookie: b=c"', 'name="a\x00b"', "\r\n name=a", 'name="a\x7f"']
)
def test_a_media_type_has_no_line_breaks(parameter: str) -> None:
    assert is_media_type('text/plain; name="a b"; charset=utf-8')
    assert not is_media_type(f"text/plain; {parameter}")
