"""Tools of a server, called through the pipeline."""

import asyncio

import pytest
import pytest_asyncio

from narratoria.errors import TIMEOUT
from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.run.call_record import Call
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

# One server for all tests here that leave it whole.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def secret():
    return "sesame-open-4711"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(folder, secret, place_class):
    place = place_class(folder)
    async with mcp_tools(place.servers(env={"API_KEY": secret})) as servers:
        registry = ToolRegistry()
        servers.follow(registry)
        registry.servers = servers
        yield registry
    assert place.eventually(lambda: not place.alive())


async def test_a_text_is_the_message_and_the_value(registry):
    result = await registry.execute("trial.echo", {"text": "hello"})
    assert result.success
    assert result.message == "hello"
    assert result.render() == "hello"


async def test_structured_content_is_the_value(registry):
    result = await registry.execute("trial.add", {"a": 2, "b": 3})
    assert result.value == {"total": 5}


async def test_arguments_are_checked_before_the_server_is_asked(registry):
    result = await registry.execute("trial.add", {"a": "2", "c": 1})
    assert result.failure.code == "INVALID_ARGUMENTS"


async def test_an_error_of_the_tool_is_a_failed_result_with_its_text(registry):
    result = await registry.execute("trial.fail", {})
    assert not result.success
    assert "the dragon is asleep" in result.failure.message
    assert result.failure.source == "tool"


async def test_a_name_that_is_not_ours_is_mapped_and_shown(registry):
    assert (await registry.execute("trial.getuser", {})).message == "user"
    assert "trial.getuser: the server calls it 'getUser'" in registry.servers.notes


async def test_a_long_description_is_no_reason_to_refuse_a_tool(registry):
    tool = registry.get("trial.long_description")
    assert len(tool.description) > 1_000
    assert (await registry.execute(tool.name, {})).message == "long"


async def test_progress_and_logs_become_events_of_the_call(registry):
    call = Call()
    result = await registry.executor.execute("trial.slow", {"seconds": 0.1}, session=Session(), call=call)
    assert result.success
    said = [(event.message, (event.fields or {}).get("progress")) for event in call.events]
    assert said[:2] == [("step 1", 0.25), ("step 2", 0.5)]
    assert ("the last step", None) in said


async def test_a_picture_is_kept_in_the_asset_store(registry):
    session = Session()
    result = await registry.execute("trial.picture", {}, session=session)
    assert result.success
    (asset,) = session.asset_records.values()
    assert (asset.kind, asset.media_type) == ("image", "image/png")
    assert session.assets.path_of(asset.hash).read_bytes().startswith(b"\x89PNG")


async def test_sounds_and_resources_are_kept_and_links_are_named(registry):
    session = Session()
    result = await registry.execute("trial.media", {}, session=session)
    assert result.message == "all kinds\na rose\n[x](https://example.org/x)"
    kinds = {(one.asset_id, one.kind, one.media_type) for one in session.asset_records.values()}
    assert kinds == {
        ("audio-1", "audio", "audio/wav"),
        ("poem.txt", "text", "text/plain"),
        ("map.png", "image", "image/png"),
    }


async def test_a_call_that_takes_too_long_is_stopped_and_the_server_goes_on(registry):
    before = (await registry.execute("trial.pid", {})).value
    call = Call(timeout=0.3)
    result = await registry.executor.execute("trial.slow", {"seconds": 60}, session=Session(), call=call)
    assert result.failure.code == TIMEOUT
    assert "no result within 0.3 s" in result.failure.message
    assert (await registry.execute("trial.pid", {})).value == before


async def test_a_cancelled_call_leaves_the_connection_whole(registry):
    call = asyncio.create_task(registry.execute("trial.slow", {"seconds": 60}))
    await asyncio.sleep(0.2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await registry.execute("trial.echo", {"text": "still here"})).success


async def test_calls_share_the_connection_and_run_side_by_side(registry):
    results = await asyncio.gather(*[registry.execute("trial.slow", {"seconds": 0.4}) for _ in range(10)])
    assert all(one.success for one in results)
    assert max(one.metadata.duration for one in results) < 3


async def test_a_plan_calls_tools_by_server_and_name_and_uses_their_results(registry):
    plan = PlanDocument.from_data(
        {
            "requestId": "p",
            "tools": [
                {"toolId": "sum", "toolPath": "trial.add", "input": {"a": 2, "b": 40}, "dependencies": []},
                {
                    "toolId": "next",
                    "toolPath": "trial.add",
                    "input": {"a": {"$from": "sum", "path": "total"}},
                    "dependencies": ["sum"],
                },
            ],
        }
    )
    result = await PlanExecutor(registry, Session()).execute(plan)
    assert result.success, result
    assert [one.output for one in result.tool_results] == [{"total": 42}, {"total": 43}]


async def test_a_server_that_asks_the_person_is_told_that_nobody_can_answer(registry):
    result = await registry.execute("trial.ask", {})
    assert not result.success
    assert "licitation" in result.failure.message


async def test_a_server_gets_a_short_environment_and_its_own_variables(registry, monkeypatch):
    assert (await registry.execute("trial.environ", {"name": "OPENAI_API_KEY"})).message == "(unset)"
    assert "/narratoria-" in (await registry.execute("trial.environ", {"name": "TMPDIR"})).message


async def test_a_secret_of_the_file_reaches_no_result(registry, secret):
    result = await registry.execute("trial.environ", {"name": "API_KEY"})
    assert result.message == "***"
    assert secret not in repr(result)
    assert secret not in repr(registry.servers._sources["trial"].server)


async def test_a_tool_that_may_change_something_says_so_and_one_that_reads_does_not(registry):
    assert [one.reversible for one in registry.get("trial.write").effects] == [False]
    assert registry.get("trial.echo").effects == ()
