"""Sessions that are shared by link."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from houses import House, begin, grind, house

from narratoria.web import permissions

pytestmark = pytest.mark.postgres


@pytest.fixture
async def served(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    async with house(postgres_database, tmp_path) as made:
        yield made


async def test_a_link_lets_others_read_or_play_until_it_is_revoked(
    served: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(served.server._permissions, "_clock", lambda: now[0])
    anna, bob = served.player("anna"), served.client()
    await bob.get("/", params={"token": served.players.make_token("bob", "player")})
    session = await begin(anna)
    asset, *_ = await grind(anna, session)
    at = f"/sessions/{session}"
    made = {
        access: (await anna.post(f"{at}/shares", json={"access": access})).json()
        for access in ("read", "play")
    }
    read, play = served.client(), served.client()
    for client, access in ((read, "read"), (play, "play"), (bob, "read")):
        answer = await client.get(made[access]["path"])
        assert answer.status_code == 303 and answer.headers["location"] == f"/play/{session}"
        for address in (at, f"{at}/state", f"{at}/events?once=1", f"/play/{session}", f"/assets/{asset}"):
            assert (await client.get(address)).status_code == 200, address
        assert [one["id"] for one in (await client.get("/sessions")).json()] == [session]
        for method, address in (("DELETE", at), ("GET", f"{at}/shares"), ("PUT", f"{at}/settings")):
            answer = await client.request(method, address, json={})
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), address
    assert (await bob.get("/me")).json()["name"] == "bob" and (await read.get("/me")).json()[
        "role"
    ] == "guest"
    assert (await read.post(f"{at}/prompt", json={"prompt": "grind"})).status_code == 403
    await grind(play, session, 2)
    for address in ("/sessions", "/import", "/tokens", f"{at}/branch"):
        assert (await play.post(address, json={})).status_code == 403, "a guest has nothing of their own"
    branch = (await bob.post(f"{at}/branch", json={"turn": 1})).json()["id"]
    assert (await anna.get(f"/sessions/{branch}")).status_code == 404, "a branch is private to who made it"

    listed = (await anna.get(f"{at}/shares")).json()
    assert {(one["id"], one["access"]) for one in listed} == {
        (one["id"], one["access"]) for one in made.values()
    }
    assert not any(one["path"] for one in listed)
    grant = await served.server._permissions._grant("name:bob", session)
    left: list[int] = []
    grant.on_end.add(lambda: left.append(1))
    assert (await anna.delete(f"{at}/shares/{made['read']['id']}")).status_code == 204
    assert (await anna.delete(f"{at}/shares/{made['read']['id']}")).status_code == 404
    await served.server._permissions.look_around()
    assert left == [1] and grant.ended, "his streams end"
    now[0] += permissions.KEPT_SECONDS + 1
    assert [(await one.get(at)).status_code for one in (read, bob, play)] == [404, 404, 200]
    assert (await served.client().get(made["read"]["path"])).status_code == 401
    assert (await bob.get(f"/assets/{asset}")).status_code == 200, "his branch has it"


async def test_a_guest_who_gets_an_account_signs_in(served: House) -> None:
    anna, guest = served.player("anna"), served.client()
    session = await begin(anna)
    link = (await anna.post(f"/sessions/{session}/shares", json={"access": "read"})).json()["path"]
    await guest.get(link)
    token = served.players.make_token("gerd", "player")
    assert (await guest.get("/", params={"token": token})).status_code == 303
    assert (await guest.get("/me")).json() == {"name": "gerd", "role": "player"}
    assert (await guest.get(link)).status_code == 303
    assert (await guest.get("/me")).json()["name"] == "gerd"
    assert [one["id"] for one in (await guest.get("/sessions")).json()] == [session]


async def test_links_end_with_the_session_and_do_not_come_back_with_its_id(served: House) -> None:
    anna = served.player("anna")
    session = await begin(anna)
    await grind(anna, session)
    guest = served.client()
    await guest.get((await anna.post(f"/sessions/{session}/shares", json={"access": "play"})).json()["path"])
    file = (await anna.get(f"/sessions/{session}/export")).content
    await anna.delete(f"/sessions/{session}")
    assert (await anna.post("/import", content=file)).json()["id"] == session
    assert served.players.shares(session) == []
    assert served.players.rights([("name:anna", session), ("name:bob", session)]) == {
        ("name:anna", session): "own"
    }
    assert [one["id"] for one in (await guest.get("/sessions")).json()] == []
