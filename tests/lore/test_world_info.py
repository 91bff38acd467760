"""World info and character cards from other clients."""

from __future__ import annotations

import base64
import json
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.lore.world_info import ImportRejected, import_data, import_file

WORLD = {
    "entries": {
        "0": {
            "uid": 0,
            "key": ["lighthouse", "/lamp( room)?/i", "/(?<=x)y/"],
            "keysecondary": ["storm"],
            "comment": "The tower",
            "content": "The tower has 212 steps.",
            "constant": False,
            "selective": True,
            "selectiveLogic": 2,
            "order": 40,
            "disable": False,
        },
        "1": {"uid": 1, "key": [], "keysecondary": [], "content": "It is always winter.", "constant": True},
        "2": {"uid": 2, "key": ["ghost"], "content": "There is none.", "disable": True, "comment": "Ghost"},
        "3": {"uid": 3, "key": ["/\\b(cat|dog)\\b/"], "content": "Pets are forbidden."},
    }
}


def card(spec: str, **more: Any) -> dict[str, Any]:
    return {
        "spec": spec,
        "spec_version": spec[-1] + ".0",
        "data": {
            "name": "Ines",
            "description": "{{char}} keeps the light. She distrusts {{user}}.",
            "personality": "Terse.",
            "scenario": "",
            "first_mes": "<USER>, shut the door.",
            "character_book": {
                "entries": [
                    {"keys": ["keys"], "content": "@@depth 3\n@@role system\n\nInes has three keys.",
                     "enabled": True, "insertion_order": 7, "extensions": {}, "use_regex": False},
                    {"keys": ["oil"], "secondary_keys": ["cellar"], "selective": True,
                     "content": "Oil is low.", "enabled": True, "insertion_order": 8,
                     "extensions": {"selectiveLogic": 0}},
                    {"keys": ["(x+x+)+y(?!z)"], "content": "Never.", "enabled": True, "use_regex": True,
                     "insertion_order": 9, "extensions": {}, "name": "bad"},
                    {"keys": ["off"], "content": "Off.", "enabled": False, "insertion_order": 1,
                     "extensions": {}},
                ]
            },
            **more,
        },
    }  # fmt: skip


def png(path: Path, **cards: Any) -> Path:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    texts = [(key, base64.b64encode(json.dumps(document).encode())) for key, document in cards.items()]
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + b"".join(chunk(b"tEXt", key.encode() + b"\x00" + value) for key, value in texts)
        + chunk(b"IDAT", zlib.compress(b"\x00\x7f"))
        + chunk(b"IEND", b"")
    )
    return path


def test_world_info_becomes_entries_that_fire_as_they_did() -> None:
    lore = import_data(WORLD, "coast")
    tower, winter, pets = lore.entries
    assert (tower.name, tower.text, tower.order) == ("The tower", "The tower has 212 steps.", 40)
    assert tower.fires("climb the lighthouse", {})
    assert not tower.fires("climb the lighthouse in the storm", {})
    assert tower.fires("up to the LAMP ROOM", {})
    assert winter.fires("", {})
    assert pets.fires("a dog!", {}) and not pets.fires("a dogma", {})


def test_what_is_left_behind_is_named() -> None:
    skipped = "\n".join(import_data(WORLD, "coast").skipped)
    assert "The tower: the keyword '/(?<=x)y/' is left out" in skipped
    assert "it has no look-around" in skipped
    assert "Ghost: switched off" in skipped


@pytest.mark.parametrize("wrapped", [False, True])
def test_world_info_of_its_own_speaks_to_the_player_too(wrapped: bool) -> None:
    content = "{{user}} once met {{Char}} here; <USER> may not remember."
    book = {"entries": [{"keys": ["inn"], "content": content, "enabled": True}]}
    [entry] = import_data({"spec": "lorebook_v3", "data": book} if wrapped else book, "inn").entries
    assert entry.text == "you once met the character here; you may not remember."


@pytest.mark.parametrize("spec", ["chara_card_v2", "chara_card_v3"])
def test_a_card_becomes_a_character_and_its_book(spec: str) -> None:
    lore = import_data(card(spec), "file")
    [ines] = lore.characters
    assert ines.sheet == "Ines keeps the light. She distrusts you.\n\nTerse."
    assert ines.greeting == "you, shut the door."
    keys, oil = lore.entries
    assert keys.text == "Ines has three keys."
    assert oil.fires("oil in the cellar", {}) and not oil.fires("oil", {})
    assert any("(x+x+)+y(?!z)" in line for line in lore.skipped)


def test_a_nickname_is_what_the_character_is_called() -> None:
    lore = import_data(card("chara_card_v3", nickname="Nes"), "file")
    assert lore.characters[0].sheet.startswith("Nes keeps the light.")


def test_a_picture_carries_its_card(tmp_path: Path) -> None:
    lore = import_file(png(tmp_path / "ines.png", chara=card("chara_card_v2")))
    assert lore.characters[0].name == "Ines"
    assert len(lore.entries) == 2


def test_version_three_wins_where_a_picture_carries_both(tmp_path: Path) -> None:
    path = png(tmp_path / "both.png", chara=card("chara_card_v2"), ccv3=card("chara_card_v3", name="Inês"))
    assert import_file(path).characters[0].name == "Inês"


def test_files_of_every_kind_are_told_apart(tmp_path: Path) -> None:
    files = {
        "world.json": WORLD,
        "card.json": card("chara_card_v2"),
        "old.json": {"name": "Ines", "description": "Keeps the light.", "first_mes": ""},
        "book.json": {"spec": "lorebook_v3", "data": card("chara_card_v3")["data"]["character_book"]},
    }
    for name, document in files.items():
        (tmp_path / name).write_text(json.dumps(document), encoding="utf-8-sig")
    found = {name: import_file(tmp_path / name) for name in files}
    assert [len(found[name].characters) for name in files] == [0, 1, 1, 0]
    assert [len(found[name].entries) for name in files] == [3, 2, 0, 2]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"not json", "neither a PNG nor JSON"),
        (b"[1]", "expected a JSON object"),
        (b'{"hello": 1}', "no world info"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00\x00\xff\xfftEXtchara\x00", "cut off"),
        (b"\x89PNG\r\n\x1a\n", "without a character card"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\x09tEXtchara\x00!!!\x00\x00\x00\x00", "holds no card"),
        (b'{"a":' * 100_000, "nested deeper"),
        (b'{"entries": [' + b"[]," * 3_000_000 + b"[]]}", "values"),
        (b'{"entries": [' + b"{}," * 30_000 + b"{}]}", "30,001 entries"),
        (b'{"entries": [1, 2, 3]}', "none of its 'entries' is an object"),
        (b'{"name": "left-pad", "description": "Pads.", "version": "1.3.0"}', "no world info"),
        (b'{"spec": "chara_card_v9", "name": "A", "description": "B", "first_mes": ""}', "no world info"),
        (b'{"name": "A", "first_mes": "\xff"}', "neither a PNG nor JSON"),
        (b'{"entries": [{"key": ["a"], "content": "b", "order": Infinity}]}', "neither a PNG nor JSON"),
        (b'{"name": "A", "first_mes": "\\ud800"}', "neither a PNG nor JSON"),
    ],
)
def test_a_file_that_is_neither_says_what_it_looked_like(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "strange"
    path.write_bytes(content)
    with pytest.raises(ImportRejected, match=complaint):
        import_file(path)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"key": ["gate"], "content": 5}, "the content must be text; got int"),
        ({"key": ["gate"], "content": ["a", "b"]}, "the content must be text; got list"),
        ({"key": ["gate"], "content": None}, "the content must be text; there is none"),
        ({"key": ["gate"]}, "the content must be text; there is none"),
        ({"key": [5], "content": "A gate."}, "the keyword 5 is no text"),
        ({"key": {"a": 1}, "content": "A gate."}, "is no text"),
    ],
)
def test_an_entry_that_is_not_made_of_text_is_named(entry: dict[str, Any], said: str) -> None:
    lore = import_data({"entries": {"0": {"comment": "Gate", **entry}}}, "coast")
    assert lore.entries == []
    [line] = lore.skipped
    assert line.startswith("Gate: ") and said in line


def test_an_empty_entry_is_a_heading_and_no_loss() -> None:
    assert import_data({"entries": {"0": {"comment": "— places —", "content": ""}}}, "coast").skipped == []


def test_what_of_a_card_is_no_text_is_named_and_the_rest_is_used() -> None:
    card = {"name": "Ada", "description": ["x"], "personality": "Dry.", "character_book": []}
    lore = import_data({"spec": "chara_card_v2", "data": card}, "ada")
    assert lore.characters[0].sheet == "Dry."
    assert lore.skipped == [
        "description: expected text, got list",
        "character_book: expected an object, got list",
    ]


def test_entries_that_are_no_objects_are_skipped_and_said() -> None:
    lore = import_data(
        {"entries": ["what", {"key": "a, b", "content": "Both."}, {"key": [1], "content": "x"}]}, "x"
    )
    assert [entry.keywords for entry in lore.entries] == [("a", "b")]
    assert len(lore.skipped) == 2


def test_a_file_that_is_not_there_is_rejected_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImportRejected, match=r"gone\.json: cannot be read: No such file"):
        import_file(tmp_path / "gone.json")


def test_an_expression_takes_no_longer_than_its_text_is_long() -> None:
    book = {"entries": [{"keys": ["(x+x+)+y"], "content": "Odd.", "use_regex": True}]}
    [entry] = import_data(book, "odd").entries
    began = time.perf_counter()
    assert not entry.fires("x" * 20_000, {})
    assert entry.fires("xxxY", {})  # of a file that does not ask for the case
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '{"entries": [],\n "entries": []}',
            r'the key "entries" appears twice in one object \(line 2, column 2\)',
        ),
        (
            '{"entries": [{"a": "b:c", "keys": [],\n\n  "keys": []}]}',
            r'"keys" appears twice.*\(line 3, column 3\)',
        ),
    ],
)
def test_a_key_that_stands_there_twice_is_named_with_its_place(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "book.json").write_text(text)
    with pytest.raises(ImportRejected, match=complaint):
        import_file(tmp_path / "book.json")


def test_a_byte_that_is_no_text_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "book.json").write_bytes(b'{"entries": [{"content": "caf\xe9"}]}')
    with pytest.raises(ImportRejected, match=r"it is not UTF-8 \(byte 29\)"):
        import_file(tmp_path / "book.json")
