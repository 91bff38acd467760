"""Lorebooks and character cards on their way into a game: what is kept, what is dropped, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from narratoria.errors import NarratoriaError
from narratoria.play.game_lore import MOST_ENTRIES, NO_LORE, GameLore, OwnLore
from narratoria.play.lore_file import LoreFile, read_lore_file

CARD = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {
        "name": "Ines",
        "description": "{{char}} keeps the light.",
        "first_mes": "Shut the door.",
        "mes_example": "<START>",
        "alternate_greetings": [],
        "extensions": {"fav": True},
        "character_book": {
            "recursive_scanning": True,
            "entries": [
                {"keys": ["oil"], "content": "@@depth 3\nOil is low.", "enabled": True, "insertion_order": 5},
                {"keys": ["off"], "content": "Off.", "enabled": False},
                {
                    "keys": ["/lamp(s)?/"],
                    "content": "Dark.",
                    "extensions": {"probability": 50, "position": 0},
                },
                {"keys": ["long"], "content": "x" * 20_001, "comment": "Long"},
            ],
        },
    },
}


def read(document: Any, lore: GameLore = NO_LORE, name: str = "ines.json") -> LoreFile:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_lore_file(data, name, lore)


def test_a_card_is_kept_and_everything_that_is_dropped_is_listed() -> None:
    found = read(CARD)
    assert found.name == "Ines"
    assert [(one.kind, one.name, one.text, one.book) for one in found.kept] == [
        ("character", "Ines", "Ines keeps the light.", "Ines"),
        ("lore", "entry 0", "Oil is low.", "Ines"),
        ("lore", "entry 2", "Dark.", "Ines"),
    ]
    dropped = "\n".join(found.dropped)
    for said in (
        "entry 1: switched off",
        "“Long”: a text has at most 20,000 letters",
        "its greeting",
        "its example dialogue",
        "what other programs added",
        "lore that calls up other lore",
        "of 1 entry: chance",
        "of 1 entry: decorators",
    ):
        assert said in dropped
    assert "other greetings" not in dropped  # there are none
    assert "place in the prompt" not in dropped  # it is the usual one


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"name": "package", "description": "Not a card.", "version": 1}, "no world info .* and no character card"),
        ({"entries": []}, "nothing in it can be used"),
        ({"spec": "chara_card_v2", "data": {"name": "Nobody"}}, "nothing in it can be used. Nobody: nothing describes"),
        (b"[" * 200_000, "nested deeper than 100 levels"),
        (b"[" + b"[]," * 3_000_000 + b"[]]", "more than the 2,000,000 allowed"),
        (b"x" * (32 * 1024 * 1024 + 1), "more than the 33,554,432 bytes"),
        (b'{"entries": [], "entries": [1]}', "appears twice"),
        (b'{"entries": "\xff"}', "not UTF-8"),
        (b"", "neither a PNG nor JSON"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, "picture without a character card"),
        ({"entries": [{"keys": ["a"], "content": "b"}] * 20_001}, "more than the 20,000 allowed"),
    ],
)  # fmt: skip
def test_what_is_no_lore_is_refused_with_the_reason(document: Any, complaint: str) -> None:
    with pytest.raises(NarratoriaError, match=complaint):
        read(document)


def test_a_game_has_room_for_so_much_lore_and_no_more() -> None:
    full = GameLore(own={str(n): OwnLore(text="x", name="x") for n in range(MOST_ENTRIES)})
    with pytest.raises(NarratoriaError, match="at most 5,000 pieces of lore"):
        read(CARD, full)


def test_so_many_expressions_are_taken_and_the_others_are_dropped_by_name() -> None:
    entries = [{"keys": [f"/a{n}/"], "content": "b", "comment": f"n{n}"} for n in range(101)]
    found = read({"entries": entries})
    assert len(found.kept) == 100
    assert found.dropped == ("n100: more than 100 keywords of the game are expressions",)
