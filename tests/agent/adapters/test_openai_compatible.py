"""The adapter against real HTTP servers, well-behaved and otherwise."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import pytest

from narratoria import ToolContext, ToolResult, tool
from narratoria.agent.adapters import (
    ContextOverflow,
    FormatRefused,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelRequest,
    ModelTimedOut,
    ModelUnreachable,
    Price,
    ReplyTooLarge,
)
from narratoria.agent.adapters.key_masking import Discreet
from narratoria.agent.adapters.openai_compatible import OpenAIAdapter
from narratoria.errors import NarratoriaError
from narratoria.testing import Fails, Floods, Hangs, Redirects, Says, ScriptedModel, Writes

HELLO = [{"role": "user", "content": "hello"}]


def to(server: ScriptedModel, **options: object) -> OpenAIAdapter:
    return OpenAIAdapter(base_url=server.url, model="scripted", **options)  # type: ignore[arg-type]


@dataclass
class Light:
    item: str


@tool(description="Light something.")
async def light(params: Light, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult("lit")


async def test_text_arrives_in_pieces_and_is_whole_in_the_end() -> None:
    heard: list[str] = []
    async with ScriptedModel(Says("The lamp is lit.", piece=4)) as server:
        reply = await to(server, price=Price(1.0, 2.0)).complete(ModelRequest(HELLO), heard.append)
    assert reply.text == "".join(heard) == "The lamp is lit."
    assert len(heard) == 4
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 5)
    assert reply.usage.cost == pytest.approx(20e-6)


async def test_tool_calls_are_put_together_from_their_pieces() -> None:
    calls = (("light", '{"item": "torch"}'), ("light", '{"item": "lamp"}'))
    async with ScriptedModel(Says(calls=calls, piece=3)) as server:
        reply = await to(server).complete(ModelRequest(HELLO, tools=[light], tool_choice="required"))
        sent = server.requests[0]
    assert [(call.name, call.arguments) for call in reply.calls] == list(calls)
    assert sent["tool_choice"] == "required"
    assert sent["tools"][0]["function"]["parameters"]["required"] == ["item"]


async def test_a_server_that_does_not_count_tokens_is_estimated() -> None:
    async with ScriptedModel(Says("x" * 400, tokens=None)) as server:
        reply = await to(server).complete(ModelRequest(HELLO))
    assert not reply.usage.counted
    assert reply.usage.output_tokens == 101


async def test_the_only_model_of_a_server_needs_no_name() -> None:
    async with ScriptedModel(Says("yes")) as server:
        adapter = OpenAIAdapter(base_url=server.url)
        await adapter.complete(ModelRequest(HELLO))
        assert server.requests[0]["model"] == "scripted"


async def test_a_body_of_200_megabytes_is_cut_off() -> None:
    async with ScriptedModel(Floods()) as server:
        with pytest.raises(ReplyTooLarge, match="cut off after 1,000,000 bytes"):
            await to(server, max_reply_bytes=1_000_000).complete(ModelRequest(HELLO))
        assert server.sent < 20_000_000


async def test_an_error_of_200_megabytes_is_cut_off_too() -> None:
    async with ScriptedModel(Floods(status=500)) as server:
        with pytest.raises(ReplyTooLarge):
            await to(server, max_reply_bytes=1_000_000).complete(ModelRequest(HELLO))
        assert server.sent < 20_000_000


async def test_a_compressed_body_is_refused_since_it_could_be_a_bomb() -> None:
    raw = Writes(b"", content_type="text/event-stream\r\nContent-Encoding: gzip")
    async with ScriptedModel(raw) as server:
        with pytest.raises(ModelFailed, match="gzip"):
            await to(server).complete(ModelRequest(HELLO))
        assert server.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("after", ["", "The lamp"])
async def test_a_server_that_hangs_is_left_when_time_is_up(after: str) -> None:
    async with ScriptedModel(Hangs(after)) as server:
        with pytest.raises(ModelTimedOut, match=r"within 0\.2 s"):
            await to(server).complete(ModelRequest(HELLO, timeout=0.2))
        await asyncio.wait_for(server.left_alone.wait(), 5)


async def test_a_cancelled_question_closes_its_connection() -> None:
    begun = asyncio.Event()
    async with ScriptedModel(Hangs("The lamp")) as server:
        asking = asyncio.create_task(to(server).complete(ModelRequest(HELLO), lambda text: begun.set()))
        await asyncio.wait_for(begun.wait(), 5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(server.left_alone.wait(), 5)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"id": "x", "choi',
        b'data: {"id": "x", "choi\n\n',
        b"data: 17\n\n",
        b'data: {"unheard": "of"}\n\n',
        b"\xff\xfe\x00",
        b"<html>Bad gateway</html>",
        b'data: {"error": {"message": "the model crashed"}}\n\n',
        b"data: " + b"[" * 200_000 + b"\n\n",
        b'data: {"choices": [5]}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"content": ["a"]}}]}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [7]}}]}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"prompt_tokens": "many"}}\n\n',
    ],
    ids=range(13),
)
async def test_half_a_reply_is_a_failure_that_says_so(body: bytes) -> None:
    async with ScriptedModel(Writes(body)) as server:
        with pytest.raises(ModelFailed, match=r"127\.0\.0\.1"):
            await to(server).complete(ModelRequest(HELLO))


async def test_a_status_is_passed_on_and_nothing_is_retried() -> None:
    async with ScriptedModel(Fails(503, "loading model"), Says("too late")) as server:
        with pytest.raises(ModelFailed, match="503: loading model"):
            await to(server).complete(ModelRequest(HELLO))
        assert len(server.requests) == 1


async def test_an_overflowing_context_and_a_refused_format_are_told_apart() -> None:
    overflow = Fails(400, "the request exceeds the available context size")
    refused = Fails(400, "response_format json_schema is not supported")
    async with ScriptedModel(overflow, refused, Fails(400, "no such role")) as server:
        with pytest.raises(ContextOverflow):
            await to(server).complete(ModelRequest(HELLO, schema={"type": "object"}))
        with pytest.raises(FormatRefused):
            await to(server).complete(ModelRequest(HELLO, schema={"type": "object"}))
        with pytest.raises(ModelFailed) as other:
            await to(server).complete(ModelRequest(HELLO, schema={"type": "object"}))
    assert type(other.value) is ModelFailed


async def test_nobody_at_the_address_is_said_so() -> None:
    async with ScriptedModel() as server:
        url = server.url
    with pytest.raises(ModelUnreachable, match="is the server running"):
        await OpenAIAdapter(base_url=url, model="m").complete(ModelRequest(HELLO, timeout=5))


async def test_one_adapter_serves_one_event_loop_after_another() -> None:
    def ask(url: str, adapter: OpenAIAdapter) -> str:
        return asyncio.run(adapter.complete(ModelRequest(HELLO))).text

    async with ScriptedModel(Says("one"), Says("two")) as server:
        adapter = to(server)
        assert [await asyncio.to_thread(ask, server.url, adapter) for _ in range(2)] == ["one", "two"]


async def test_the_environment_configures_it_and_keys_stay_where_they_belong() -> None:
    async with ScriptedModel(Says("hi")) as server:
        adapter = OpenAIAdapter.from_environment(
            {
                "NARRATORIA_LLM_URL": server.url,
                "NARRATORIA_LLM_MODEL": "m",
                "NARRATORIA_LLM_PRICE": "0.5/2",
                "NARRATORIA_LLM_TEMPERATURE": "0.3",
                "OPENAI_API_KEY": "secret",
            }
        )
        await adapter.complete(ModelRequest(HELLO))
        assert "secret" not in server.headers[0]["authorization"]
        assert server.requests[0]["temperature"] == 0.3
    assert adapter.price == Price(0.5, 2.0)
    hosted = OpenAIAdapter.from_environment({"OPENAI_API_KEY": "secret", "OPENAI_MODEL": "m"})
    assert "openai.com" in hosted.address
    with pytest.raises(NarratoriaError, match="NARRATORIA_LLM_URL"):
        OpenAIAdapter.from_environment({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PRICE", "cheap"),
        ("PRICE", "-1/2"),
        ("PRICE", "1/nan"),
        ("TEMPERATURE", "hot"),
        ("TEMPERATURE", "nan"),
    ],
)
def test_a_setting_that_is_no_number_is_refused_by_its_name(name: str, value: str) -> None:
    variable = f"NARRATORIA_LLM_{name}"
    with pytest.raises(NarratoriaError, match=f"{variable}='{value}'"):
        OpenAIAdapter.from_environment({"OPENAI_API_KEY": "k", variable: value})


@pytest.mark.parametrize(
    "address",
    ["garbage", "localhost:11434/v1", "http://", "ftp://host/v1", "http://host:port/v1", "http://[::1/v1"],
)
@pytest.mark.parametrize("variable", ["NARRATORIA_LLM_URL", "OPENAI_BASE_URL"])
def test_an_address_that_is_none_is_refused_by_its_name(variable: str, address: str) -> None:
    with pytest.raises(NarratoriaError, match=f"{variable}=.*expected an address such as http"):
        OpenAIAdapter.from_environment({variable: address})


def test_a_password_in_a_wrong_address_is_not_repeated() -> None:
    with pytest.raises(NarratoriaError, match="NARRATORIA_LLM_URL=…") as refused:
        OpenAIAdapter.from_environment({"NARRATORIA_LLM_URL": "me:SECRET@host/v1"})
    assert "SECRET" not in str(refused.value)


# --- servers that do not stream ----------------------------------------------------------------------------


async def test_a_server_that_does_not_stream_is_understood_all_the_same() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "light", "arguments": '{"item": "lamp"}'}}
    message = {"role": "assistant", "content": "Aye.", "tool_calls": [call]}
    whole = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "plain",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    heard: list[str] = []
    async with ScriptedModel(Writes(json.dumps(whole).encode(), "application/json; charset=utf-8")) as server:
        reply = await to(server).complete(ModelRequest(HELLO), heard.append)
    assert (reply.text, reply.finish, reply.model, heard) == ("Aye.", "tool_calls", "plain", ["Aye."])
    assert [(one.id, one.name, one.arguments) for one in reply.calls] == [("c1", "light", '{"item": "lamp"}')]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 3)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{"message": 5}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": "x", "tool_calls": [5]}}]}',
        b'{"choices": [{"mess',
    ],
    ids=range(7),
)
async def test_a_whole_reply_that_is_none_is_a_failure(body: bytes) -> None:
    async with ScriptedModel(Writes(body, "application/json")) as server:
        with pytest.raises(ModelFailed):
            await to(server).complete(ModelRequest(HELLO))


async def test_an_error_in_a_whole_reply_is_told() -> None:
    body = json.dumps({"error": {"message": "This model's maximum context length is 8 tokens"}}).encode()
    async with ScriptedModel(Writes(body, "application/json")) as server:
        with pytest.raises(ContextOverflow, match="8 tokens"):
            await to(server).complete(ModelRequest(HELLO))


async def test_a_page_in_the_place_of_a_reply_is_named_by_its_type() -> None:
    async with ScriptedModel(Writes(b"<html>hello</html>", "text/html")) as server:
        with pytest.raises(ModelFailed, match=r"text/html.*is this the address of the API"):
            await to(server).complete(ModelRequest(HELLO))


# --- what a server says, and what is passed on -------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_server_that_will_not_have_us_is_told_from_one_that_stumbles(status: int) -> None:
    async with ScriptedModel(Fails(status), Fails(500)) as server:
        with pytest.raises(ModelRefused, match=str(status)):
            await to(server).complete(ModelRequest(HELLO))
        with pytest.raises(ModelFailed) as stumble:
            await to(server).complete(ModelRequest(HELLO))
    assert not isinstance(stumble.value, ModelRefused)


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [(429, "60", 60.0), (429, "", None), (503, "0.5", 0.5), (429, "Thu, 01 Jan 1970 00:00:00 GMT", 0.0)],
)
async def test_how_long_a_busy_server_wants_to_be_left_alone_is_read(
    status: int, header: str, seconds: float | None
) -> None:
    async with ScriptedModel(Fails(status, "slow down", retry_after=header)) as server:
        with pytest.raises(ModelBusy, match="slow down") as busy:
            await to(server).complete(ModelRequest(HELLO))
    assert busy.value.retry_after == seconds


@pytest.mark.parametrize(
    "message",
    [
        "Incorrect API key provided: key-of-mine.",
        "Incorrect API key provided: sk-proj-AbCdEf123456.",
        "bad header Authorization: Bearer key-of-mine",
    ],
)
async def test_a_key_that_a_server_echoes_is_not_passed_on(message: str) -> None:
    async with ScriptedModel(Fails(401, message), Writes(message.encode(), "text/html")) as server:
        adapter = to(server, api_key="key-of-mine")
        for _ in range(2):
            with pytest.raises(ModelFailed) as failed:
                await adapter.complete(ModelRequest(HELLO))
            assert "key-of-mine" not in str(failed.value)
            assert "AbCdEf" not in str(failed.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_what_was_meant_for_one_server_is_not_carried_to_another(status: int) -> None:
    async with ScriptedModel(Says("mine now")) as other:
        elsewhere = other.url.replace("http://", "http://me:secret@") + "/chat/completions"
        async with ScriptedModel(Redirects(elsewhere, status)) as server:
            with pytest.raises(ModelRefused, match=rf"{status}.*would have us go to {other.url}") as refused:
                await to(server).complete(ModelRequest(HELLO))
        assert other.requests == []
    assert "secret" not in str(refused.value)


async def test_a_redirection_to_nowhere_is_a_refusal_too() -> None:
    async with ScriptedModel(Redirects("http://[bad"), Redirects("")) as server:
        for _ in range(2):
            with pytest.raises(ModelRefused, match="would have us go to"):
                await to(server).complete(ModelRequest(HELLO))


def test_what_stands_before_the_host_of_an_address_is_not_shown() -> None:
    adapter = OpenAIAdapter(base_url="http://me:secret@localhost:1/v1", model="m")
    assert "secret" not in adapter.address
    assert "secret" not in adapter.name
    assert "localhost:1/v1" in adapter.address


def test_a_secret_in_pieces_is_not_passed_on() -> None:
    heard: list[str] = []
    discreet = Discreet("sk-secret", heard.append)
    for piece in ("The key is sk-", "sec", "ret, and sk-s", "ome other. sk-", "secretsk-secre"):
        discreet(piece)
    discreet.end()
    assert "".join(heard) == "The key is [key], and sk-some other. [key]sk-secre"


async def test_a_key_that_the_model_tells_is_masked_in_what_is_heard_and_in_the_reply() -> None:
    async with ScriptedModel(Says("The key is sk-SECRETKEY123456, said the door.")) as server:
        adapter = OpenAIAdapter(base_url=server.url, model="m", api_key="sk-SECRETKEY123456")
        heard: list[str] = []
        reply = await adapter.complete(ModelRequest([{"role": "user", "content": "x"}]), heard.append)
    assert "".join(heard) == reply.text == "The key is [key], said the door."


def test_without_a_key_and_an_address_it_is_said_what_to_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(
        NarratoriaError, match=r"no language model is configured: pass base_url.*OPENAI_API_KEY"
    ):
        OpenAIAdapter()
