"""What a story remembers, over HTTP: look, change, import, take back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from bench_tool import HOSTILE

from conftest import RunningServer

BOOK = {
    "name": "Coast",
    "entries": {
        "0": {
            "key": ["gull", "/bird(s)?/i"],
            "comment": "Pim",
            "content": "The gull is called Pim.",
            "order": 5,
        },
        "1": {"key": ["off"], "comment": "Off", "content": "Off.", "disable": True},
    },
}


class Memory:
    """The memory of one session, through the API."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self.client, self.at = client, f"/sessions/{session}"

    def view(self) -> dict[str, Any]:
        return self.client.get(f"{self.at}/memory").raise_for_status().json()

    def edit(self, **asked: Any) -> httpx.Response:
        return self.client.post(f"{self.at}/memory", json=asked)

    def bring(self, content: Any, name: str = "coast.json") -> httpx.Response:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.client.post(f"{self.at}/memory/import", params={"name": name}, content=data)

    def say(self, prompt: str) -> int:
        turn = (
            self.client.post(f"{self.at}/prompt", json={"prompt": prompt}).raise_for_status().json()["turn"]
        )
        for _ in range(400):
            text = self.client.get(f"{self.at}/events", params={"once": 1, "after": 0}).text
            if f'"type":"turn_committed","turn":{turn}' in text:
                return turn
            time.sleep(0.05)
        raise AssertionError("the turn did not end")


@pytest.fixture
def memory(server: RunningServer) -> Iterator[Memory]:
    session = server.new_session("lighthouse")
    with server.client() as client:
        yield Memory(client, session)


def test_a_book_is_imported_told_pinned_edited_forgotten_and_brought_back(memory: Memory) -> None:
    answer = memory.bring(BOOK)
    assert answer.status_code == 201
    brought = answer.json()
    assert (brought["name"], brought["entries"], brought["characters"]) == ("Coast", 1, 0)
    assert brought["dropped"] == ["Off: switched off in the file"]
    turn = memory.say("what about the birds?")
    [pim] = memory.view()["own"]
    assert (pim["name"], pim["keywords"], pim["book"], pim["turns"]) == (
        "Pim",
        ["gull", "/bird(s)?/i"],
        "Coast",
        [turn],
    )
    memory.edit(id=pim["id"], pinned=True, text="Pim is a gull, and old.").raise_for_status()
    [pim] = memory.view()["own"]
    assert (pim["pinned"], pim["text"], pim["name"]) == (True, "Pim is a gull, and old.", "Pim")
    gone = memory.edit(book="Coast", forgotten=True).raise_for_status().json()["edit"]
    assert (memory.view()["own"], memory.view()["lastEdit"]) == ([], gone)
    memory.client.post(f"{memory.at}/memory/undo", json={"edit": gone}).raise_for_status()
    assert memory.view()["own"] == [pim]
    assert memory.view()["lastEdit"] < gone  # the edit before it is next
    again = memory.client.post(f"{memory.at}/memory/undo", json={"edit": gone})
    assert (again.status_code, again.json()["error"]) == (409, "refused")


def test_a_turn_is_pinned_said_otherwise_and_forgotten(memory: Memory) -> None:
    turn = memory.say("look up at the tower")
    ref = f"turn:{turn}"
    [item] = [one for one in memory.view()["remembered"] if one["id"] == ref]
    assert item["text"].startswith("look up at the tower → ")
    memory.edit(id=ref, pinned=True).raise_for_status()
    memory.edit(id=ref, text="The tower is dark.").raise_for_status()
    [item] = [one for one in memory.view()["remembered"] if one["id"] == ref]
    assert (item["pinned"], item["edited"], item["text"]) == (True, True, "The tower is dark.")
    memory.edit(id=ref, forgotten=True).raise_for_status()
    [item] = [one for one in memory.view()["remembered"] if one["id"] == ref]
    assert (item["pinned"], item["forgotten"]) == (False, True)


def test_a_note_and_lore_in_hostile_words_come_back_as_they_are(memory: Memory) -> None:
    memory.edit(note=HOSTILE).raise_for_status()
    memory.edit(name=HOSTILE, text=HOSTILE, keywords=[HOSTILE]).raise_for_status()
    view = memory.view()
    assert view["note"] == HOSTILE.strip()
    assert view["own"][0]["text"] == HOSTILE.strip()


@pytest.mark.parametrize(
    ("asked", "status", "complaint"),
    [
        ({"id": "turn:99", "pinned": True}, 400, "nothing is remembered under 'turn:99'"),
        ({"id": "story:x:y", "pinned": True}, 400, "nothing is remembered"),
        ({"id": "memory:long-term:player settings", "forgotten": True}, 400, "nothing is remembered"),
        ({"id": "memory:lore:note", "forgotten": True}, 400, "nothing is remembered"),
        ({"text": "x"}, 422, "give it a name or a keyword"),
        ({"note": "x" * 4001}, 422, "at most 4,000 letters"),
        ({"note": "x", "colour": "red"}, 400, "colour"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(
    memory: Memory, asked: Any, status: int, complaint: str
) -> None:
    answer = memory.edit(**asked)
    assert answer.status_code == status
    assert complaint in answer.json()["message"]


def test_a_file_that_is_no_lore_is_refused_and_changes_nothing(memory: Memory) -> None:
    answer = memory.bring({"name": "thing", "description": "A thing."}, "thing.json")
    assert answer.status_code == 422
    assert "thing.json: no world info (no 'entries') and no character card" in answer.json()["message"]
    twice = memory.bring(b'{"entries": [],\n "entries": []}')
    assert "(line 2, column 2)" in twice.json()["message"]
    assert memory.view()["own"] == []


def test_settings_are_no_edit_of_the_memory(memory: Memory) -> None:
    memory.client.put(f"{memory.at}/settings", json={"narrator": "rules"}).raise_for_status()
    for edit in range(12):
        answer = memory.client.post(f"{memory.at}/memory/undo", json={"edit": edit})
        assert answer.status_code == 409
