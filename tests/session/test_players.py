"""Players of a shared server: tokens, roles, and sessions that are private to their player."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from houses import House, begin, grind, house
from serving import TOKEN
from starlette.routing import Route

from narratoria.cli import main
from narratoria.errors import JournalError
from narratoria.store.postgres import PostgresStore
from narratoria.web import accounts
from narratoria.web.permissions import OF_ROLE, OPEN

pytestmark = pytest.mark.postgres


@pytest.fixture
async def served(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    async with house(postgres_database, tmp_path) as made:
        yield made


def filled(path: str, session: str, asset: str) -> str:
    path = path.replace("{id}", session).replace("{hash}", asset).replace("{path:path}", "js/main.js")
    return re.sub(r"\{\w+\}", "x", path)


async def test_no_route_shows_a_foreign_session(served: House) -> None:
    anna, bob = served.player("anna"), served.player("bob", "author")
    guest = served.client()
    session = await begin(anna)
    asset, *_ = await grind(anna, session)
    walked = 0
    for route in served.app.routes:
        assert isinstance(route, Route), "whatever else there may be needs a guard too"
        for method in sorted(route.methods):
            address = filled(route.path, session, asset)
            answer = await bob.request(method, address, json={})
            what = f"{method} {route.path}: {answer.status_code} {answer.text[:200]}"
            unknown = await bob.request(method, filled(route.path, "0" * 32, "0" * 64), json={})
            least = OF_ROLE.get(("GET" if method == "HEAD" else method, route.path))
            if "{id}" in route.path or "{hash}" in route.path:
                assert answer.status_code == 404, what
                assert (answer.status_code, answer.content) == (unknown.status_code, unknown.content), what
                walked += 1
            elif route.path not in OPEN and least is None:
                assert answer.status_code == 403, what
            else:
                assert answer.status_code not in {401, 403, 404}, what
                assert session not in answer.text, what
            if route.path not in OPEN:
                assert (await guest.request(method, address, json={})).status_code == 401, what
            if method == "POST" and route.path == "/sign-out":
                bob = served.player("bob", "author")
    assert walked > 40
    assert (await anna.get(f"/sessions/{session}")).json()["turns"] == 1, "and nothing was done to it"


async def test_a_player_has_their_own_sessions_and_the_operator_all(served: House) -> None:
    anna, bob = served.player("anna"), served.player("bob")
    first = await begin(anna)
    asset, *_ = await grind(anna, first)
    branch = (await anna.post(f"/sessions/{first}/branch", json={"turn": 1})).json()["id"]
    file = (await anna.get(f"/sessions/{first}/export")).content
    imported = (await bob.post("/import", content=file)).json()["id"]

    async def listed(client: object) -> set[str]:
        return {one["id"] for one in (await client.get("/sessions")).json()}  # type: ignore[attr-defined]

    assert await listed(anna) == {first, branch} and await listed(bob) == {imported}
    assert await listed(served.player("anna")) == {first, branch}, "a name is a player, whatever the token"
    assert await listed(served.operator) == {first, branch, imported}
    for one in (anna, bob, served.operator):
        assert (await one.get(f"/assets/{asset}")).status_code == 200, "bob has it by his import"
    assert (await served.player("eve").get(f"/assets/{asset}")).status_code == 404
    assert (await anna.delete(f"/sessions/{first}")).status_code == 204
    assert (await anna.get(f"/assets/{asset}")).status_code == 200, "the branch has the past"
    again = await anna.post("/import", content=file)
    assert again.status_code == 201 and await listed(bob) == {imported}
    assert (await anna.get("/me")).json() == {"name": "anna", "role": "player"}
    assert (await served.operator.get("/me")).json()["role"] == "operator"


async def test_roles_differ_in_what_reaches_past_a_session(served: House) -> None:
    anna, author = served.player("anna"), served.player("otto", "author")
    for player, status in ((anna, 403), (author, 200)):
        session = await begin(player)
        answer = await player.put(f"/sessions/{session}/settings", json={"permissions": {"network": True}})
        assert answer.status_code == status, answer.text
        answer = await player.patch(
            f"/sessions/{session}", json={"settings": {"permissions": {"network": True}}}
        )
        assert answer.status_code == status, answer.text
        assert (await player.put(f"/sessions/{session}/settings", json={"skills": {}})).status_code == 200
        assert (await player.get("/metrics")).status_code == 403
        assert (await player.get("/model")).status_code == 403
    assert "author" in (await anna.post(f"/sessions/{await begin(anna)}/call/run", json={})).json()["message"]
    assert (await served.player("olga", "operator").get("/metrics")).status_code == 200


async def test_a_browser_comes_in_by_a_token_and_leaves_everywhere(served: House) -> None:
    token = served.players.make_token("anna", "player")
    browser = served.client(Accept="text/html")
    answer = await browser.get("/", params={"token": token})
    assert answer.status_code == 303 and "token" not in answer.headers["location"]
    assert (await browser.get("/me")).json()["name"] == "anna"
    handed = (await browser.post("/tokens")).json()["token"]
    other = served.client()
    assert (await other.get("/", params={"token": handed})).status_code == 303
    assert (await other.get("/me")).json()["name"] == "anna"
    assert (await served.client().get("/", params={"token": handed})).status_code == 401, "it works once"
    assert (await served.client(handed).get("/me")).status_code == 401, "it is for a browser"
    assert (await browser.post("/sign-out")).status_code == 204
    assert (await browser.get("/me")).status_code == 401
    assert (await other.get("/me")).status_code == 200
    kept = served.players._store.query("SELECT hash FROM tokens UNION SELECT hash FROM sign_ins")
    assert token not in str(kept) and handed not in str(kept)


async def test_a_revoked_token_ends_its_browsers_and_streams(
    served: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(served.server.access, "_clock", lambda: now[0])
    token = served.players.make_token("anna", "player")
    program, browser = served.client(token), served.client()
    await browser.get("/", params={"token": token})
    handed = (await browser.post("/tokens")).json()["token"]
    other = served.client()
    await other.get("/", params={"token": handed})
    assert [(await one.get("/me")).status_code for one in (program, browser, other)] == [200, 200, 200]
    known = await served.server.access.of_program(token)
    left: list[int] = []
    known.on_end.add(lambda: left.append(1))
    (card,) = served.players.tokens()
    served.players.revoke_token(card.id)
    await served.server.access.look_around()
    assert left == [1] and known.ended
    now[0] += accounts.KEPT_SECONDS + 1
    assert [(await one.get("/me")).status_code for one in (program, browser, other)] == [401, 401, 401]
    with pytest.raises(JournalError, match="token list"):
        served.players.revoke_token(card.id)


async def test_a_token_ends_at_its_date_and_its_browsers_with_it(served: House) -> None:
    token = served.players.make_token("anna", "player", 3600)
    browser = served.client()
    await browser.get("/", params={"token": token})
    assert (await browser.get("/me")).status_code == 200
    served.players._write("UPDATE tokens SET expires = clock_timestamp() - interval '1 s'")
    rows = served.players._store.query("SELECT expires < clock_timestamp() + interval '3601 s' FROM sign_ins")
    assert rows == [(True,)], "not the thirty days of a browser"
    assert (await served.client(token).get("/me")).status_code == 401
    assert (await served.client().get("/", params={"token": token})).status_code == 401


@pytest.mark.slow
async def test_a_request_that_another_server_answers_keeps_its_caller(
    served: House, postgres_database: str, tmp_path: Path
) -> None:
    token = served.players.make_token("anna", "player")
    anna = served.client(token)
    session = await begin(anna)
    await grind(anna, session)
    async with house(postgres_database, tmp_path) as other:
        there = other.client(token)
        branch = (await there.post(f"/sessions/{session}/branch", json={})).json()["id"]
        assert other.server.games.count == 0, "it was sent on"
        assert {one["id"] for one in (await anna.get("/sessions")).json()} == {session, branch}
        assert (await other.player("bob").get(f"/sessions/{session}/state")).status_code == 404


def test_tokens_are_made_listed_and_revoked_by_the_command(
    postgres_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    monkeypatch.setenv("NARRATORIA_STORE", postgres_database)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            raise SystemExit(main(["serve", "token", *arguments]))
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    code, made, said = run("make", "Anna B", "--role", "author", "--days", "90")
    assert code == 0 and len(made.strip()) == 32 and "shown this once" in said
    assert run("make", "Bob")[0] == 0
    code, listed, _ = run("list")
    assert code == 0 and made.strip() not in listed
    bob, anna = listed.splitlines()
    assert "never ends" in bob and bob.endswith("Bob") and "author" in anna and anna.endswith("Anna B")
    assert run("revoke", anna.split()[0])[0] == 0 and "Anna" not in run("list")[1]
    code, _, said = run("revoke", anna.split()[0])
    assert code != 0 and "token list" in said
    with contextlib.closing(PostgresStore(postgres_database, assets=tmp_path)) as store:
        assert store.players.any_token()


async def test_a_database_that_is_away_is_said_to_a_player(
    served: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise JournalError("PostgreSQL: gone")

    monkeypatch.setattr(served.players._store, "query", away)
    answer = await served.client("some token").get("/me")
    assert (answer.status_code, answer.json()["error"]) == (503, "database")
    assert int(answer.headers["retry-after"]) > 0
    assert (await served.client(TOKEN).get("/me")).status_code == 200


def test_a_cancelled_question_does_not_end_the_keeper(postgres_database: str, tmp_path: Path) -> None:
    with contextlib.closing(PostgresStore(postgres_database, assets=tmp_path)) as store:
        begun, go_on = threading.Event(), threading.Event()
        store.keeper.submit(lambda database: (begun.set(), go_on.wait(10)))
        begun.wait(10)
        assert store.keeper.submit(lambda database: 1).cancel(), "its client went away"
        go_on.set()
        assert store.keeper.submit(lambda database: 2).result(10) == 2
