"""`ToolServer` in a program of one's own: typed tools, declared results, prompts, large catalogues."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp.client.client import Client

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.agent.prompt import MarkdownSection, Prompt
from narratoria.errors import PromptValidationError
from narratoria.events import Asset
from narratoria.kinds.compose import sequence
from narratoria.mcp_server import OfferedPrompt, ToolServer, client, prompt_of_sections
from narratoria.mcp_server import catalogue as catalogue_module
from narratoria.mcp_server.results import content_of
from narratoria.session.assets import AssetStore
from narratoria.tools.tool import Tool


@dataclass(frozen=True)
class Light:
    target: str
    brightness: int = 1


@dataclass(frozen=True)
class Lit:
    target: str
    lit: bool


@tool(description="Light something.")
async def light(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return ToolResult.ok(Lit(params.target, True), "It burns.")


@tool(description="Count the letters.")
async def count(params: Light, *, context: ToolContext) -> ToolResult[int]:
    return ToolResult.ok(len(params.target))


@tool(description="Say nothing.")
async def silent(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return ToolResult("Done.")


async def plain_handler(params: Any, *, context: ToolContext) -> ToolResult[Any]:
    return ToolResult("ok")


def connected(server: ToolServer, **options: Any) -> Client:
    return Client(server.protocol, mode="legacy", raise_exceptions=True, **options)


async def test_a_declared_result_is_an_output_schema_that_results_keep():
    async with connected(ToolServer(ToolRegistry([light, count, silent]))) as host:
        listed = {one.name: one for one in (await host.list_tools()).tools}
        assert set(listed) == {"light", "count", "silent"}  # no journal, so nothing to undo
        assert listed["light"].output_schema["required"] == ["target", "lit"]
        result = await host.call_tool("light", {"target": "torch"})
        assert result.structured_content == {"target": "torch", "lit": True}
        assert result.content[0].text == 'It burns.\n{"target":"torch","lit":true}'
        assert listed["count"].output_schema["properties"] == {"result": {"type": "integer"}}
        assert (await host.call_tool("count", {"target": "torch"})).structured_content == {"result": 5}
        # A client would refuse an answer that breaks the schema, and nobody would learn why.
        broken = await host.call_tool("silent", {"target": "torch"})
        assert broken.is_error
        assert "gave no value" in broken.content[0].text


async def test_five_hundred_tools_are_one_page_and_rendered_once(monkeypatch):
    rendered: list[str] = []
    render = catalogue_module.listed

    def counted(one: Tool[Any, Any]) -> Any:
        rendered.append(one.name)
        return render(one)

    monkeypatch.setattr(catalogue_module, "listed", counted)
    registry = ToolRegistry(
        Tool(f"tool_{number:03}", "Does it.", plain_handler, parameters={"type": "object"})
        for number in range(500)
    )
    server = ToolServer(registry)
    async with connected(server) as host:
        first = await host.list_tools()
        assert (len(first.tools), first.next_cursor) == (500, None)
        page = server.catalogue.page("2025-11-25")
        second = await host.list_tools()
        assert server.catalogue.page("2025-11-25") is page
        assert [one.name for one in second.tools] == [f"tool_{number:03}" for number in range(500)]
        assert len(rendered) == 500
        registry.register(Tool("another", "Does it.", plain_handler, parameters={"type": "object"}))
        third = await host.list_tools()
        assert third.tools[0].name == "another"
        assert len(rendered) == 501


async def test_a_tool_of_the_name_undo_keeps_it(tmp_path):
    from narratoria.store.sqlite import SqliteStore

    store = SqliteStore(tmp_path / "sessions.db", assets=tmp_path / "assets")
    journal = store.create(Session())
    registry = ToolRegistry([Tool("undo", "Mine.", plain_handler, parameters={"type": "object"})])
    async with connected(ToolServer(registry, journal.session)) as host:
        assert [one.name for one in (await host.list_tools()).tools] == ["undo", "narratoria_undo"]
        assert (await host.call_tool("undo", {})).content[0].text == "ok"
        assert (await host.call_tool("narratoria_undo", {})).is_error  # nothing was changed
    await journal.close()
    store.close()


async def test_calls_that_overlap_are_one_turn_and_undone_together(tmp_path):
    from narratoria.store.sqlite import SqliteStore

    meet = asyncio.Barrier(2)

    @tool(name="meet", description="Wait for the other, then patch.")
    async def both(params: Light, *, context: ToolContext) -> ToolResult[None]:
        await meet.wait()
        context.patch({params.target: True})
        return ToolResult("met")

    store = SqliteStore(tmp_path / "sessions.db", assets=tmp_path / "assets")
    session = store.create(Session()).session
    async with connected(ToolServer(ToolRegistry([both]), session)) as host:
        await asyncio.gather(*(host.call_tool("meet", {"target": name}) for name in ("a", "b")))
        assert session.snapshot() == {"a": True, "b": True}
        undone = (await host.call_tool("undo", {})).structured_content["undone"]
        assert len(undone) == 2
        assert session.snapshot() == {}
    await session.journal.close()
    store.close()


async def test_a_tool_can_ask_the_person_and_knows_whether_it_can():
    @tool(name="ask", description="Ask for a name.")
    async def ask(params: None, *, context: ToolContext) -> ToolResult[None]:
        asked = client()
        assert asked is not None
        if not asked.can("elicitation"):
            return ToolResult("nobody to ask")
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        reply = await asked.elicit("Who are you?", form)
        return ToolResult(f"hello {reply.content['name']}")

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Mira"})

    server = ToolServer(ToolRegistry([ask]))
    async with connected(server) as host:
        assert (await host.call_tool("ask", {})).content[0].text == "nobody to ask"
    async with connected(server, elicitation_callback=answer) as host:
        assert (await host.call_tool("ask", {})).content[0].text == "hello Mira"
    assert client() is None


@dataclass(frozen=True)
class Scene:
    place: str
    mood: Literal["calm", "storm"] = "calm"


async def test_a_prompt_of_sections_takes_its_params_as_arguments():
    prompt = Prompt(
        ns="tales",
        key="scene",
        name="A scene",
        sections=[MarkdownSection[Scene](title="Scene", key="scene", template="It is $mood in $place.")],
    )
    async with connected(ToolServer(ToolRegistry([light]), prompts=[prompt_of_sections(prompt)])) as host:
        (listed,) = (await host.list_prompts()).prompts
        assert (listed.name, listed.title) == ("tales.scene", "A scene")
        assert [(one.name, one.required) for one in listed.arguments] == [("place", True), ("mood", False)]
        told = await host.get_prompt("tales.scene", {"place": "Sull", "mood": "storm"})
        assert told.messages[0].content.text == "## Scene\n\nIt is storm in Sull."
        reference = types.PromptReference(type="ref/prompt", name="tales.scene")
        found = await host.complete(reference, {"name": "mood", "value": "s"})
        assert found.completion.values == ["storm"]


def test_two_prompts_of_one_name_are_refused():
    twice = [OfferedPrompt("one", lambda given: "a"), OfferedPrompt("one", lambda given: "b")]
    with pytest.raises(PromptValidationError, match="two prompts are named 'one'"):
        ToolServer(ToolRegistry(), prompts=twice)


async def test_calls_that_change_nothing_share_a_transaction_and_a_change_is_written_before_its_answer(
    tmp_path,
):
    from narratoria.store.sqlite import SqliteStore

    @tool(name="patch", description="Patch.")
    async def patch(params: None, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"lit": True})
        return ToolResult("patched")

    store = SqliteStore(tmp_path / "sessions.db", assets=tmp_path / "assets")
    session = store.create(Session()).session
    journal = session.journal
    async with connected(ToolServer(ToolRegistry([light, patch]), session)) as host:
        await journal.flush()
        written = journal.written
        await host.call_tool("light", {"target": "torch"})
        assert journal.written == written
        await host.call_tool("patch", {})
        assert journal.written == session.seq
        await host.call_tool("light", {"target": "torch"})
        async with asyncio.timeout(10):
            while journal.written < session.seq:  # soon, although nobody asks for it
                await asyncio.sleep(0.01)
    await journal.close()
    store.close()


async def test_logs_of_parts_and_of_worker_threads_reach_the_client_of_their_call_alone():
    """Two calls at once, one of a composition and one of a plain function: each client hears its own."""
    met = threading.Barrier(2)

    @tool(name="step", description="A step.")
    async def step(params: Light, *, context: ToolContext) -> ToolResult[None]:
        context.log(f"step {params.target}")
        return ToolResult("stepped")

    @tool(name="plain", description="Runs in a thread.")
    def plain(params: Light, *, context: ToolContext) -> ToolResult[None]:
        if params.brightness > 1:
            met.wait(10)
        context.log(f"thread {params.target}")
        return ToolResult("done")

    twice = sequence([step, step], name="twice")
    server = ToolServer(ToolRegistry([step, plain, twice]))

    async def heard_in(name: str, arguments: dict[str, Any]) -> list[Any]:
        lines: list[Any] = []

        async def hear(params: types.LoggingMessageNotificationParams) -> None:
            lines.append(params.data)

        steps: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            steps.append(done)

        async with connected(server, logging_callback=hear) as host:
            result = await host.call_tool(name, arguments, progress_callback=progress)
            assert not result.is_error, result.content
        assert steps == [float(number) for number in range(1, len(lines) + 1)]  # a step for each line
        return lines

    assert await heard_in("twice", {"target": "a"}) == ["step a", "step a"]
    pair = await asyncio.gather(
        heard_in("plain", {"target": "b", "brightness": 2}),
        heard_in("plain", {"target": "c", "brightness": 2}),
    )
    assert pair == [["thread b"], ["thread c"]]


def test_a_drawing_in_svg_is_a_text_for_the_host(tmp_path):
    (tmp_path / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    store = AssetStore(tmp_path / "assets")
    made = Asset(
        version="0", asset_id="dot", kind="image", media_type="image/svg+xml", path=str(tmp_path / "dot.svg")
    )
    content = content_of(store.accept("call", made), store)
    assert content["type"] == "resource" and content["resource"]["text"].startswith("<svg")


def test_the_server_without_its_extra_names_the_command():
    hidden = "import sys; sys.modules['mcp'] = None; sys.modules['mcp_types'] = None\n"
    found = "import narratoria.extras as e; e.absent = lambda extra: ['mcp']\n"
    done = subprocess.run(
        [sys.executable, "-c", hidden + found + "from narratoria.mcp_server import ToolServer"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "pip install 'narratoria[mcp]'" in done.stderr.splitlines()[-1]
