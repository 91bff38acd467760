"""004 `ToolRegistry`."""

import importlib
from dataclasses import dataclass

import pytest

from narratoria.errors import NarratoriaError, ToolValidationError
from narratoria.kinds.compose import sequence
from narratoria.kinds.function import tool
from narratoria.kinds.load import load_tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import ToolContext, ToolResult


@dataclass(frozen=True)
class Nothing:
    pass


def make(name, description="A tool."):
    @tool(name=name, description=description)
    async def handler(params: Nothing, *, context: ToolContext) -> ToolResult[str]:
        return ToolResult.ok(name)

    return handler


def test_tools_are_found_by_name_and_with_the_colon_of_004():
    registry = ToolRegistry([make("web_scrape")])
    assert registry.get("web_scrape") is registry.get("web:scrape")
    assert registry.has("web:scrape") and not registry.has("nope") and registry.get("nope") is None


def test_two_tools_of_one_name_are_refused_and_the_first_stays():
    first = make("one")
    registry = ToolRegistry([first])
    with pytest.raises(ToolValidationError, match="already registered"):
        registry.register(make("one"))
    assert registry.get("one") is first and len(registry) == 1


def test_register_all_list_and_unregister():
    registry = ToolRegistry()
    registry.register_all([make("b"), make("a")])
    assert [one.name for one in registry.list()] == ["b", "a"]
    registry.unregister("b")
    registry.unregister("never there")
    assert [one.name for one in registry] == ["a"]


def test_search_looks_at_names_and_descriptions_whatever_the_case():
    registry = ToolRegistry([make("light_torch", "Light it."), make("open_door", "Needs a LIGHT push.")])
    assert [one.name for one in registry.search("^light")] == ["light_torch"]
    assert len(registry.search("LIGHT")) == 2


def test_a_search_takes_linear_time_whatever_the_pattern():
    registry = ToolRegistry([make("slow", "a" * 40 + "!")])
    assert registry.search("^(a+)+$") == []


def test_a_bad_search_pattern_is_a_clear_error():
    with pytest.raises(NarratoriaError, match="not a regular expression"):
        ToolRegistry().search("(")


def test_what_is_not_a_tool_is_refused_with_the_way_to_make_one():
    with pytest.raises(ToolValidationError, match="@tool"):
        ToolRegistry([lambda: None])


async def test_execute_without_a_session_uses_a_fresh_one():
    assert (await ToolRegistry([make("one")]).execute("one", {})).value == "one"


async def test_effects_can_be_applied_and_preconditions_checked_on_their_own():
    effect = StateChangeEffect(description="count", state="hits", change="increment", reversible=True)

    @tool(description="Counts.", name="count", effects=[effect])
    async def count(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    registry = ToolRegistry([count])
    session = Session()
    draft = session.draft()
    context = ToolContext(count, draft, "call", registry.executor, registry.executor.scope)
    assert (await registry.validate_preconditions(count, context)).passed
    await registry.apply_effects(count, ToolResult.ok(None), context)
    draft.commit("call")
    assert session.state == {"hits": 1}


def test_a_package_brings_tools_by_entry_points(tmp_path, monkeypatch):
    (tmp_path / "bell_tools.py").write_text(
        "from dataclasses import dataclass\n"
        "from narratoria import ToolContext, ToolResult, tool\n"
        "@dataclass\n"
        "class Ring:\n    times: int = 1\n"
        "@tool(description='Ring the bell.')\n"
        "async def ring(params: Ring, *, context: ToolContext) -> ToolResult[int]:\n"
        "    return ToolResult.ok(params.times)\n"
        "def several():\n    return [ring]\n"
    )
    info = tmp_path / "bell_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bell-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[narratoria.tools]\nbell = bell_tools:several\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry = ToolRegistry()
    assert registry.register_entry_points() == ("ring",)
    assert registry.get("ring").description == "Ring the bell."


async def test_what_is_no_context_or_no_tool_is_refused_with_what_to_write():
    count = make("count")
    registry = ToolRegistry([count])
    hint = r"registry\.context\(tool, session\)"
    with pytest.raises(
        ToolValidationError, match=f"validate_preconditions takes a context .*not Session; .*{hint}"
    ):
        await registry.validate_preconditions(count, Session())
    with pytest.raises(ToolValidationError, match=f"apply_effects takes a context .*not Session; .*{hint}"):
        await registry.apply_effects(count, ToolResult.ok(1), Session())
    for name in ([], None, {"a": 1}, 3):
        with pytest.raises(
            ToolValidationError, match=f"a tool or its name there, not {type(name).__name__};"
        ):
            await registry.execute(name, {})


def test_two_tools_of_one_name_are_named_with_their_files(tmp_path):
    made = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "walk"
        path.parent.mkdir()
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        made.append(load_tool(path))
    with pytest.raises(
        ToolValidationError, match=r"'walk' is already registered \(.*/a/walk and .*/b/walk\)"
    ):
        ToolRegistry(made)


async def test_a_name_where_a_tool_is_wanted_is_told_with_what_to_write():
    registry = ToolRegistry([make("walk")])
    for asked in (
        lambda: registry.validate_preconditions("walk"),
        lambda: registry.apply_effects("walk", ToolResult.ok(None), registry.context(registry.get("walk"))),
    ):
        with pytest.raises(
            ToolValidationError, match=r"takes a tool there, not str; .* registry\.get\('walk'\)"
        ):
            await asked()
    with pytest.raises(ToolValidationError, match="context takes a tool there, not NoneType"):
        registry.context(registry.get("none"))


def test_a_part_of_a_composition_is_found_unless_two_share_its_name():
    alone, first, second = make("ring"), make("knock"), make("knock")
    inner = sequence([alone, first], name="inner")
    registry = ToolRegistry([sequence([inner, second], name="outer"), make("wait")])
    assert registry.find_part("ring") is alone and registry.find_part("inner") is inner
    assert registry.find_part("wait") is registry.get("wait")
    assert registry.find_part("knock") is None and registry.find_part("nope") is None
