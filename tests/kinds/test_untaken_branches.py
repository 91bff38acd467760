"""A branch that is not taken changes nothing; its first tool's assets and choices are kept and shown."""

import pytest

from narratoria.kinds.compose import Branch, conditional
from narratoria.kinds.function import tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.assets import AssetStore
from narratoria.tools.tool import ToolContext, ToolResult


def painter(name, tmp_path, *, fails=False):
    @tool(description="Paints.", name=name)
    async def paint(params: None, *, context: ToolContext) -> ToolResult[None]:
        file = tmp_path / f"{name}.txt"
        file.write_text(f"a picture by {name}")
        context.asset(file, media_type="text/plain", kind="text", asset_id=name)
        context.patch({name: True})
        return ToolResult.error("no") if fails else ToolResult.ok(None)

    return paint


async def never(result, context):
    return False


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("fallback", [False, True])
async def test_the_assets_of_an_untaken_first_tool_are_kept(tmp_path, fails, fallback):
    session = Session(assets=AssetStore(tmp_path / "assets"))
    last = [painter("last", tmp_path)] if fallback else []
    whole = conditional([Branch(never, [painter("probe", tmp_path, fails=fails)])], last, name="whole")
    result = await ToolRegistry([whole]).execute("whole", {}, session=session)
    assert result.success is fallback and session.state == ({"last": True} if fallback else {})
    kept = sorted(one.asset_id for one in session.asset_records.values())
    assert kept == (["last", "probe"] if fallback else ["probe"])


async def test_the_assets_of_an_abandoned_attempt_are_kept(tmp_path):
    paint = painter("paint", tmp_path)

    @tool(description="Tries.", name="tries")
    async def tries(params: None, *, context: ToolContext) -> ToolResult[None]:
        async with context.attempt() as trial:
            await trial.call(paint, {})
            trial.abandon()
        with pytest.raises(KeyError):
            async with context.attempt() as trial:
                await trial.call(painter("other", tmp_path), {})
                raise KeyError
        return ToolResult.ok(None)

    session = Session(assets=AssetStore(tmp_path / "assets"))
    assert (await ToolRegistry([tries]).execute("tries", {}, session=session)).success
    assert sorted(one.asset_id for one in session.asset_records.values()) == ["other", "paint"]
    assert session.state == {}
