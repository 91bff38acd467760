"""Prompts, sections and their tools (002, "Registration Lifecycle")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from narratoria.agent.prompt import MarkdownSection, Prompt, PromptOverrides, Section, SectionVisibility
from narratoria.errors import PromptValidationError, ToolValidationError, VisibilityExpansionRequired
from narratoria.run.executor import ToolExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.tool import Tool, ToolContext, ToolExample, ToolResult


@dataclass(frozen=True)
class Scene:
    place: str
    mood: str = "calm"


@dataclass(frozen=True)
class Query:
    text: str
    limit: int = 3


@dataclass(frozen=True)
class Found:
    titles: list[str]


def make_tool(name: str, **fields: Any) -> Tool[Query, Found]:
    async def handler(params: Query, *, context: ToolContext) -> ToolResult[Found]:
        return ToolResult.ok(Found([params.text]))

    return Tool[Query, Found](name=name, description=f"Does {name}.", handler=handler, **fields)


def prompt_of(*sections: Section[Any]) -> Prompt:
    return Prompt(ns="tests", key="scene", sections=sections)


def test_002_a_section_declares_its_tools_and_the_rendered_prompt_has_them() -> None:
    lookup_tool, search_tool = make_tool("lookup"), make_tool("search")
    section = MarkdownSection[Scene](
        title="Guidance",
        key="guidance",
        template="Use tools when needed.",
        tools=[lookup_tool, search_tool],
    )
    rendered = prompt_of(section).bind(Scene("cave")).render()
    assert rendered.tools == (lookup_tool, search_tool)
    assert rendered.text == "## Guidance\n\nUse tools when needed."


def test_placeholders_are_filled_from_the_params() -> None:
    section = MarkdownSection[Scene](
        title="Place", key="place", template="You are in $place, ${mood}ly. $$5."
    )
    assert (
        "You are in a $mood cave, calmly. $5." in prompt_of(section).bind(Scene("a $mood cave")).render().text
    )


def test_a_template_s_indentation_is_not_the_reader_s_business() -> None:
    section = MarkdownSection(
        title="T",
        key="t",
        template="""
            first
              second
        """,
    )
    assert prompt_of(section).render().text == "## T\n\nfirst\n  second"


def test_values_with_parts_are_rendered_as_json_and_none_as_nothing() -> None:
    @dataclass(frozen=True)
    class Parts:
        things: list[str]
        count: int
        nothing: str | None = None

    section = MarkdownSection[Parts](title="T", key="t", template="[$things|$count|$nothing]")
    assert prompt_of(section).bind(Parts(["a"], 2)).render().text.endswith('[["a"]|2|]')


def test_children_are_rendered_below_their_parents_and_use_their_params() -> None:
    inner = MarkdownSection(title="Inner", key="inner", template="In $place.")
    outer = MarkdownSection[Scene](title="Outer", key="outer", template="Out.", children=[inner])
    rendered = prompt_of(outer).bind(Scene("fog")).render()
    assert rendered.text == "## Outer\n\nOut.\n\n### Inner\n\nIn fog."
    assert rendered.sections == ("outer", "outer.inner")


def test_the_order_of_tools_is_the_order_of_declaration_depth_first() -> None:
    first = MarkdownSection(
        title="A",
        key="a",
        template="a",
        tools=[make_tool("one")],
        children=[MarkdownSection(title="B", key="b", template="b", tools=[make_tool("two")])],
    )
    second = MarkdownSection(title="C", key="c", template="c", tools=[make_tool("three"), make_tool("four")])
    prompt = prompt_of(first, second)
    assert [tool.name for tool in prompt.render().tools] == ["one", "two", "three", "four"]
    assert prompt.render().tools == prompt.render().tools


# --- what is refused -------------------------------------------------------------------------------------


def test_002_duplicate_tool_names_are_refused_with_both_section_paths() -> None:
    inner = MarkdownSection(title="Inner", key="inner", template="", tools=[make_tool("lookup")])
    with pytest.raises(PromptValidationError) as caught:
        prompt_of(
            MarkdownSection(title="A", key="a", template="", tools=[make_tool("lookup")]),
            MarkdownSection(title="B", key="b", template="", children=[inner]),
        )
    assert str(caught.value) == (
        "prompt tests/scene: section b.inner: the tool 'lookup' is already declared in section a; "
        "tool names are unique within a prompt"
    )


def test_a_placeholder_without_a_field_is_refused_with_the_section_s_path() -> None:
    inner = MarkdownSection[Scene](title="Inner", key="inner", template="$place $smell $sound")
    outer = MarkdownSection(title="Outer", key="outer", template="", children=[inner])
    with pytest.raises(
        PromptValidationError,
        match=r"section outer\.inner: template: nothing fills \$smell, \$sound; the params have mood, place",
    ):
        prompt_of(outer)


def test_a_placeholder_in_a_section_without_params_is_refused() -> None:
    with pytest.raises(PromptValidationError, match=r"section a: template: nothing fills \$x; .* no params"):
        prompt_of(MarkdownSection(title="A", key="a", template="$x"))


def test_a_lonely_dollar_sign_is_refused() -> None:
    with pytest.raises(PromptValidationError, match=r"section a: template: a \$ stands alone"):
        MarkdownSection(title="A", key="a", template="costs $ 5")


def test_params_that_are_missing_unwanted_or_doubled_are_refused() -> None:
    prompt = prompt_of(MarkdownSection[Scene](title="A", key="a", template="$place"))
    with pytest.raises(PromptValidationError, match="section a: it needs Scene"):
        prompt.render()
    with pytest.raises(PromptValidationError, match="no section takes Query; params are Scene"):
        prompt.bind(Query("x"))
    with pytest.raises(PromptValidationError, match="Scene is given twice"):
        prompt.bind(Scene("x"), Scene("y"))


def test_params_with_defaults_need_no_binding() -> None:
    @dataclass(frozen=True)
    class Mood:
        mood: str = "calm"

    assert "calm" in prompt_of(MarkdownSection[Mood](title="A", key="a", template="$mood")).render().text
    section = MarkdownSection[Scene](title="A", key="a", template="$place", default_params=Scene("home"))
    assert "home" in prompt_of(section).render().text
    assert "away" in prompt_of(section).bind(Scene("away")).render().text


def test_params_may_be_a_struct_and_nothing_else_than_that_or_a_dataclass() -> None:
    class Place(msgspec.Struct):
        name: str

    section = MarkdownSection[Place](title="A", key="a", template="$name")
    assert "cave" in prompt_of(section).bind(Place("cave")).render().text
    with pytest.raises(PromptValidationError, match="params are a dataclass or a Struct"):
        MarkdownSection[dict]


@pytest.mark.parametrize("key", ["", "Has Space", "UPPER", "dot.dot", "x" * 65])
def test_a_section_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(PromptValidationError, match="section key"):
        MarkdownSection(title="A", key=key, template="")


def test_two_sections_of_one_key_beside_each_other_are_refused() -> None:
    section = MarkdownSection(title="A", key="a", template="")
    with pytest.raises(PromptValidationError, match="section a: two sections"):
        prompt_of(section, section)


def test_what_is_not_a_tool_or_not_a_section_is_refused() -> None:
    with pytest.raises(PromptValidationError, match="is not a tool"):
        MarkdownSection(title="A", key="a", template="", tools=[len])  # type: ignore[list-item]
    with pytest.raises(PromptValidationError, match="is not a section"):
        prompt_of("text")  # type: ignore[arg-type]


def test_002_examples_are_validated_against_params_when_the_tool_is_made() -> None:
    example = ToolExample("bad input", Query(text=5))  # type: ignore[arg-type]
    with pytest.raises(ToolValidationError, match=r"tool 'lookup': examples\[0\]\.input: text"):
        make_tool("lookup", examples=(example,))


def test_002_examples_are_validated_against_the_result_when_the_tool_is_made() -> None:
    example = ToolExample("bad output", Query("x"), Found(titles="no"))  # type: ignore[arg-type]
    with pytest.raises(ToolValidationError, match=r"tool 'lookup': examples\[0\]\.output: .*\.titles is str"):
        make_tool("lookup", examples=(example,))


def test_examples_are_part_of_the_text() -> None:
    example = ToolExample("find a map", Query("map"), Found(["Old map"]))
    section = MarkdownSection(
        title="A", key="a", template="Look.", tools=[make_tool("lookup", examples=(example,))]
    )
    assert prompt_of(section).render().text == (
        "## A\n\nLook.\n\nExamples of `lookup`:\n\n"
        '- find a map: `{"text":"map","limit":3}` gives `{"titles":["Old map"]}`'
    )


# --- enabling --------------------------------------------------------------------------------------------


def test_only_enabled_sections_bring_text_and_tools_and_children() -> None:
    child = MarkdownSection(title="Child", key="child", template="child", tools=[make_tool("two")])
    section = MarkdownSection[Scene](
        title="Night",
        key="night",
        template="dark",
        tools=[make_tool("one")],
        children=[child],
        enabled=lambda params: params.mood == "dark",
    )
    after = MarkdownSection(title="After", key="night2", template="after", tools=[make_tool("three")])
    prompt = prompt_of(section, after)
    calm, dark = prompt.bind(Scene("x")).render(), prompt.bind(Scene("x", "dark")).render()
    assert [tool.name for tool in calm.tools] == ["three"]
    assert "dark" not in calm.text
    assert "child" not in calm.text
    assert [tool.name for tool in dark.tools] == ["one", "two", "three"]


def test_enabled_may_be_a_flag_or_ask_nothing() -> None:
    on = True
    sections = [
        MarkdownSection(title="A", key="a", template="", enabled=False),
        MarkdownSection(title="B", key="b", template="", enabled=lambda: on),
    ]
    assert prompt_of(*sections).render().sections == ("b",)
    on = False
    assert prompt_of(*sections).render().sections == ()


# --- overrides -------------------------------------------------------------------------------------------


def test_a_description_is_overridden_where_the_tool_accepts_it_and_the_original_stays() -> None:
    tool = make_tool("lookup")
    prompt = prompt_of(MarkdownSection(title="A", key="a", template="", tools=[tool]))
    overridden = prompt.bind().override(PromptOverrides.from_json('{"tools": {"lookup": "Find it."}}'))
    (changed,) = overridden.render().tools
    assert (changed.description, tool.description) == ("Find it.", "Does lookup.")
    assert changed.handler is tool.handler


def test_a_tool_that_does_not_accept_overrides_refuses_them() -> None:
    tool = make_tool("lookup", accepts_overrides=False)
    prompt = prompt_of(MarkdownSection(title="A", key="a", template="", tools=[tool]))
    with pytest.raises(PromptValidationError, match="'lookup' does not accept overrides"):
        prompt.bind().override(PromptOverrides(tools={"lookup": "Find it."}))


def test_overrides_of_nothing_known_or_too_long_are_refused() -> None:
    prompt = prompt_of(MarkdownSection(title="A", key="a", template="", tools=[make_tool("lookup")]))
    for overrides, says in (
        (PromptOverrides(tools={"search": "x"}), "no tool 'search'"),
        (PromptOverrides(tools={"lookup": "x" * 201}), "1-200 characters"),
        (PromptOverrides(tools={"lookup": " "}), "1-200 characters"),
        (PromptOverrides(sections={"b": "x"}), "no section 'b'"),
        (PromptOverrides(sections={"a": "$x"}), r"section a: override: nothing fills \$x"),
    ):
        with pytest.raises(PromptValidationError, match=says):
            prompt.bind().override(overrides)
    with pytest.raises(PromptValidationError, match="prompt overrides"):
        PromptOverrides.from_json('{"tols": {}}')


def test_a_section_s_text_is_overridden_unless_it_does_not_accept_that() -> None:
    prompt = prompt_of(
        MarkdownSection[Scene](title="A", key="a", template="old"),
        MarkdownSection(title="B", key="b", template="fixed", accepts_overrides=False),
    )
    bound = prompt.bind(Scene("cave")).override(PromptOverrides(sections={"a": "new in $place"}))
    assert bound.render().text == "## A\n\nnew in cave\n\n## B\n\nfixed"
    with pytest.raises(PromptValidationError, match="section b: it does not accept overrides"):
        prompt.bind().override(PromptOverrides(sections={"b": "x"}))


# --- progressive disclosure ------------------------------------------------------------------------------


def lore() -> Prompt:
    deep = MarkdownSection(title="Elves", key="elves", template="Long ago.", tools=[make_tool("recall")])
    return prompt_of(
        MarkdownSection(title="Rules", key="rules", template="Be kind.", tools=[make_tool("roll")]),
        MarkdownSection[Scene](
            title="Lore",
            key="lore",
            template="All of it about $place.",
            summary="What is known of $place.",
            visibility=SectionVisibility.SUMMARY,
            tools=[make_tool("search")],
            children=[deep],
        ),
    )


def test_a_summarised_section_shows_its_summary_and_hides_its_tools_and_children() -> None:
    rendered = lore().bind(Scene("Ys")).render()
    assert "What is known of Ys." in rendered.text
    assert "All of it" not in rendered.text
    assert "Long ago" not in rendered.text
    assert 'open_sections` with section_keys ["lore"]' in rendered.text
    assert [tool.name for tool in rendered.tools] == ["roll", "open_sections"]
    assert (rendered.sections, rendered.summarised) == (("rules",), ("lore",))


async def test_opening_a_section_raises_and_the_prompt_rendered_again_shows_it() -> None:
    bound = lore().bind(Scene("Ys"))
    rendered = bound.render()
    executor = ToolExecutor(ToolRegistry(rendered.tools), scope=rendered.scope())
    with pytest.raises(VisibilityExpansionRequired) as caught:
        await executor.execute(
            "open_sections", {"section_keys": ["lore"], "reason": "history"}, session=Session()
        )
    assert (caught.value.section_keys, caught.value.reason) == (("lore",), "history")
    again = bound.open(*caught.value.section_keys).render()
    assert "All of it about Ys." in again.text
    assert [tool.name for tool in again.tools] == ["roll", "search", "recall"]
    assert again.summarised == ()


async def test_opening_what_is_not_summarised_is_a_failed_result() -> None:
    rendered = lore().bind(Scene("Ys")).render()
    executor = ToolExecutor(ToolRegistry(rendered.tools), scope=rendered.scope())
    for keys in (["rules"], []):
        result = await executor.execute("open_sections", {"section_keys": keys}, session=Session())
        assert not result.success
        assert "summarised are lore" in result.message


def test_visibility_may_depend_on_the_params() -> None:
    section = MarkdownSection[Scene](
        title="A",
        key="a",
        template="full",
        summary="short",
        visibility=lambda params: (
            SectionVisibility.FULL if params.mood == "curious" else SectionVisibility.SUMMARY
        ),
    )
    prompt = prompt_of(section)
    assert "short" in prompt.bind(Scene("x")).render().text
    assert "full" in prompt.bind(Scene("x", "curious")).render().text


def test_a_summary_visibility_without_a_summary_is_refused() -> None:
    with pytest.raises(PromptValidationError, match="pass summary="):
        MarkdownSection(title="A", key="a", template="", visibility=SectionVisibility.SUMMARY)


def test_the_name_open_sections_is_reserved() -> None:
    with pytest.raises(PromptValidationError, match="open_sections"):
        prompt_of(MarkdownSection(title="A", key="a", template="", tools=[make_tool("open_sections")]))


async def test_002_a_handler_finds_the_prompt_and_the_rendered_prompt_in_its_context() -> None:
    seen: list[Any] = []

    async def look(params: Query, *, context: ToolContext) -> ToolResult[None]:
        seen.extend([context.prompt, context.rendered_prompt])
        return ToolResult.ok(None, "ok")

    tool = Tool[Query, None](name="look", description="Looks.", handler=look)
    rendered = prompt_of(MarkdownSection(title="A", key="a", template="", tools=[tool])).render()
    executor = ToolExecutor(ToolRegistry(rendered.tools), scope=rendered.scope())
    await executor.execute("look", {"text": "x"}, session=Session())
    assert seen == [rendered.prompt, rendered]
