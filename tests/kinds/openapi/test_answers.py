"""Answers as results: values, texts, assets, failures; retries, rate limits, redirects and secrets."""

import asyncio
import json
import time

import pytest

from narratoria import Session, ToolRegistry, openapi_tools
from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR, TIMEOUT
from narratoria.kinds.openapi import http_exchange
from narratoria.kinds.openapi.document import DocumentInvalid
from narratoria.run.executor import ToolExecutor
from narratoria.tools.context import CallScope
from narratoria.tools.deadline import Deadline
from narratoria.tools.retry import no_waiting

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6260010000000500010d0a2db40000000049454e44ae426082"
)
SCHEMES = {
    "key": {"type": "apiKey", "in": "query", "name": "api_key"},
    "head": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "jar": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
}


class Sink:
    full = False

    def __init__(self):
        self.records = []

    def push(self, record):
        self.records.append(record)

    async def wait(self):
        pass


def registry(api, *, security=None, parameters=(), **options):
    operation = {"parameters": list(parameters), **({} if security is None else {"security": security})}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "T", "version": "1"},
        "paths": {
            "/it": {m: {"operationId": m, **operation} for m in ("get", "post", "put", "delete", "head")}
        },
        "components": {"securitySchemes": SCHEMES},
    }
    return ToolRegistry(openapi_tools(document, api.url, **options))


async def test_json_is_the_value(api):
    api.answer("POST /it", api.ok({"id": 7}, 201, Location="/it/7"))
    result = await registry(api).execute("post", {})
    assert (result.value, result.message) == ({"id": 7}, "201 Created; Location: /it/7")
    api.answer("GET /it", api.ok([1, 2]))
    assert (await registry(api).execute("get", {})).value == [1, 2]


async def test_text_is_the_message(api):
    api.answer("GET /it", (200, {"Content-Type": "text/plain; charset=latin-1"}, "Grüße".encode("latin-1")))
    result = await registry(api).execute("get", {})
    assert (result.message, result.value) == ("Grüße", {"text": "Grüße"})
    api.answer("GET /it", (204, {}, b""))
    result = await registry(api).execute("get", {})
    assert (result.message, result.value) == ("204 No Content", None)


async def test_head_tells_of_the_headers(api):
    api.answer("HEAD /it", (200, {"ETag": '"5"', "Set-Cookie": "a=b"}, b""))
    assert (await registry(api).execute("head", {})).value == {"content-length": "0", "etag": '"5"'}


async def test_an_image_is_an_asset(api):
    headers = {"Content-Type": "image/png", "Content-Disposition": 'attachment; filename="../../map.png"'}
    api.answer("GET /it", (200, headers, PNG))
    session = Session()
    result = await registry(api).execute("get", {}, session=session)
    assert result.value == {"file": "map.png", "mediaType": "image/png", "bytes": len(PNG)}
    (asset,) = session.asset_records.values()
    assert (asset.asset_id, session.assets.path_of(asset.hash).read_bytes()) == ("map.png", PNG)


async def test_a_failure_has_the_text_of_the_answer_bounded(api):
    api.answer("GET /it", (404, {"Content-Type": "application/json"}, b'{"error": "no pet"}'))
    result = await registry(api).execute("get", {})
    assert result.message == 'get: 404 Not Found: {"error": "no pet"}'
    assert (result.error.details, result.error.recoverable) == ({"status": 404}, False)
    api.answer("GET /it", (400, {}, b"x" * 100_000))
    assert len((await registry(api).execute("get", {})).message) < 2_100


async def test_an_answer_that_is_not_the_json_it_says(api):
    api.answer("GET /it", (200, {"Content-Type": "application/json"}, b"<html>"))
    assert (await registry(api).execute("get", {})).error.code == PROTOCOL_ERROR


async def test_an_answer_that_is_too_long_is_given_up(api, monkeypatch):
    monkeypatch.setattr(http_exchange, "ANSWER_BYTES", 1_000)
    api.answer("GET /it", (200, {"Content-Type": "text/plain"}, b"x" * 2_000))
    assert (await registry(api).execute("get", {})).error.code == OUTPUT_LIMIT


# --- again ---------------------------------------------------------------------------------------------------


async def test_a_busy_server_is_asked_again_when_it_says(api):
    api.answer("GET /it", (503, {"Retry-After": "0.3"}, b""), (429, {"Retry-After": "0"}, b""), api.ok(1))
    begun = time.monotonic()
    result = await registry(api).execute("get", {})
    assert (result.value, len(api.asked)) == (1, 3)
    assert time.monotonic() - begun >= 0.3


async def test_only_methods_that_may_be_repeated_are(api):
    for method in ("post", "put"):
        api.asked.clear()
        api.answer(f"{method.upper()} /it", (503, {"Retry-After": "0"}, b"busy"))
        result = await registry(api).execute(method, {})
        assert (result.error.code, result.error.recoverable) == ("SERVER_ERROR", method == "put")
        assert len(api.asked) == (3 if method == "put" else 1)


async def test_a_wait_beyond_the_time_of_the_call_is_a_failure_at_once(api):
    api.answer("GET /it", (429, {"Retry-After": "60"}, b"slow down"))
    used = registry(api)
    begun = time.monotonic()
    result = await used.execute("get", {})
    assert (result.error.code, result.error.details) == ("RATE_LIMIT", {"status": 429, "retryAfter": 60})
    assert result.error.suggestions == ("try again in 60 s",)
    result = await used.execute("get", {})  # the server said when: it is not asked before
    assert result.error.code == "RATE_LIMIT" and "nothing was sent" in result.message
    assert result.error.suggestions[0].startswith("try again in ")
    assert len(api.asked) == 1 and time.monotonic() - begun < 10


async def test_the_deadline_of_an_evaluation_bounds_the_waits(api):
    api.answer("GET /it", (503, {"Retry-After": "5"}, b""))
    executor = ToolExecutor(registry(api), scope=CallScope(deadline=Deadline.after(2)))
    result = await executor.execute("get", {})
    assert result.error.code == "SERVER_ERROR" and len(api.asked) == 1


async def test_a_limit_that_is_used_up_is_kept(api):
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 100)}
    api.answer("GET /it", api.ok(1, **headers))
    used = registry(api)
    assert (await used.execute("get", {})).success
    assert (await used.execute("get", {})).error.code == "RATE_LIMIT"
    api.answer("PUT /it", (403, headers, b"API rate limit exceeded"))
    assert (await used.execute("put", {})).error.code == "RATE_LIMIT"


async def test_a_connection_that_is_cut_off(api):
    api.answers["GET /it"] = api.answers["POST /it"] = lambda asked: None
    with no_waiting():
        result = await registry(api).execute("get", {})
        assert (result.error.code, result.error.recoverable, len(api.asked)) == ("NETWORK", True, 3)
        result = await registry(api).execute("post", {})
        assert (result.error.code, result.error.recoverable, len(api.asked)) == ("NETWORK", False, 4)


async def test_a_server_that_is_slow(api):
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def never(asked):
        asyncio.run_coroutine_threadsafe(stop.wait(), loop).result(20)
        return api.ok(1)

    api.answers["POST /it"] = never
    result = await registry(api, timeout=0.3).execute("post", {})
    stop.set()
    assert (result.error.code, result.error.recoverable) == (TIMEOUT, False)


# --- redirects -----------------------------------------------------------------------------------------------


async def test_redirects_on_the_same_host_are_followed(api):
    api.answer("GET /it", (302, {"Location": "/there?x=1"}, b""))
    api.answer("GET /there", api.ok("there"))
    assert (await registry(api).execute("get", {})).value == "there"
    api.answer("GET /there", (301, {"Location": "/there"}, b""))
    assert "redirects" in (await registry(api).execute("get", {})).message


@pytest.mark.parametrize(
    "target", ["http://localhost:1/x?token=abcdefgh", "//other.example/", "file:///etc/passwd"]
)
async def test_redirects_to_another_host_are_refused(api, target):
    api.answer("GET /it", (307, {"Location": target}, b""))
    result = await registry(api, headers={"X-Secret": "sesame-4711"}).execute("get", {})
    assert "not followed" in result.message and "abcdefgh" not in result.message and len(api.asked) == 1


# --- secrets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "value", "where", "expected"),
    [
        ("key", "s e/cret!", "path", "/it?api_key=s%20e%2Fcret%21"),
        ("head", "sesame-4711", "X-Key", "sesame-4711"),
        ("jar", "sesame-4711", "Cookie", "sid=sesame-4711"),
        ("bearer", "sesame-4711", "Authorization", "Bearer sesame-4711"),
        ("oauth", "sesame-4711", "Authorization", "Bearer sesame-4711"),
        ("basic", "ada:sesame", "Authorization", "Basic YWRhOnNlc2FtZQ=="),
    ],
)
async def test_secrets_come_from_the_environment_and_are_told_to_nobody(api, scheme, value, where, expected):
    def echo(asked):
        return 400, {"Content-Type": "text/plain"}, f"{asked.path} {asked.headers} {value}".encode()

    api.answers["GET /it"] = echo
    secrets = {scheme: "TRIAL_SECRET"}
    declared = [{"name": "api_key", "in": "query", "required": True, "schema": {"type": "string"}}]
    used = registry(
        api, security=[{}, {scheme: []}], parameters=declared if scheme == "key" else (),
        secrets=secrets, env={"TRIAL_SECRET": value},
    )  # fmt: skip
    assert used.get("get").parameters["properties"] == {}
    session = Session()
    session.attach(sink := Sink())
    result = await used.execute("get", {}, session=session)
    assert expected == (api.last.path if where == "path" else api.last.headers[where])
    told = f"{result} {sink.records}"
    for form in (value, "s%20e%2Fcret", "YWRhOnNlc2FtZQ", value.partition(":")[2] or value):
        assert form not in told
    api.answers["GET /it"] = lambda asked: api.ok({"echo": [value, {value: 1}]})
    assert value not in str(await used.execute("get", {}, session=session))
    api.answers["GET /it"] = lambda asked: (
        200,
        {"Content-Type": "application/x-own"},
        b"PK" + value.encode(),
    )
    assert value not in str(await used.execute("get", {}, session=session))
    kept = [session.assets.path_of(one.hash).read_bytes() for one in session.asset_records.values()]
    assert kept == [b"PK***"] and value not in str(sink.records) and len(sink.records) > 3


async def test_headers_take_variables(api):
    used = registry(api, headers={"Authorization": "token ${TRIAL_T}"}, env={"TRIAL_T": "sesame-4711"})
    await used.execute("get", {})
    assert api.last.headers["Authorization"] == "token sesame-4711"
    result = await registry(api, headers={"X-A": "${TRIAL_NONE}"}, env={}).execute("get", {})
    assert "TRIAL_NONE is not set" in result.message and len(api.asked) == 1


async def test_a_secret_that_is_missing_is_told(api):
    result = await registry(api, security=[{"key": []}], secrets={"key": "TRIAL_NONE"}, env={}).execute(
        "get", {}
    )
    assert "TRIAL_NONE is not set" in result.message and not api.asked
    api.answer("GET /it", (401, {}, b"who?"))
    result = await registry(api, security=[{"key": []}]).execute("get", {})
    assert "secrets={'key': " in result.error.suggestions[0]
    with pytest.raises(DocumentInvalid, match="no security scheme 'nonsense'; known: key, head"):
        registry(api, secrets={"nonsense": "X"})
    with pytest.raises(DocumentInvalid, match="name of an environment variable") as caught:
        registry(api, secrets={"key": "s3cr3t-value!"})
    assert "s3cr3t" not in str(caught.value)


async def test_connections_are_kept_inside_a_context(api):
    document = {"openapi": "3.1.0", "info": {}, "paths": {"/it": {"get": {"operationId": "get"}}}}
    async with openapi_tools(document, api.url) as tools:
        used = ToolRegistry(tools)
        for _ in range(3):
            assert (await used.execute("get", {})).success
        pool = tools.client._transport._pool
        assert len(pool.connections) == 1
    assert (await used.execute("get", {})).success
    assert json.dumps(len(tools)) == "1"
