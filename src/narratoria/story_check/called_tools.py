"""The calls of rules: tools that there are, with inputs that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from narratoria.errors import ArgumentsInvalid, StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.rule_tables import CallTemplate
from narratoria.story_check.rule_book import AnyTool, RuleBook, did_you_mean
from narratoria.toml_lines import KeyPath, key_path
from narratoria.tools.schema.tables import table_problems


def call_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield calls of tools that there are not, and inputs that a tool refuses."""
    seen: set[str] = set()
    for place in book.places:
        key = place.key("calls")
        if key not in seen:
            seen.add(key)
            for number, call in enumerate(place.case.calls):
                yield from _of_call(book, call, f"{key}[{number}]")
    if book.rules.stage_name not in book.tools.keys() | book.broken:
        hint = did_you_mean(book.rules.stage_name, book.tools)
        yield book.problem("stage", f"there is no tool {book.rules.stage!r}; {hint}; or leave the key out")
    for number, call in enumerate(book.rules.closing):
        yield from _of_call(book, call, f"finally[{number}]")


def _of_call(book: RuleBook, call: CallTemplate, key: str) -> Iterator[StoryProblem]:
    tool = book.tools.get(call.tool) or book.tools.get(call.tool.removeprefix("tools/"))
    if tool is not None:
        for path, problem in input_problems(call.input, tool):
            yield book.problem(f"{key}.input{path}", problem)
    elif call.tool.removeprefix("tools/") in book.broken:
        return  # it has been told
    elif lacking := book.lacking.get(call.tool.removeprefix("tools/")):
        yield book.problem(f"{key}.tool", lacking)
    elif "/" in call.tool:
        if not (book.root / call.tool).is_file():
            hint = did_you_mean(call.tool.rpartition("/")[2], book.tools)
            message = f"{call.tool!r}: there is no such file in {book.root}; {hint}"
            yield book.problem(f"{key}.tool", message)
    else:
        yield from _unknown(book, call.tool, f"{key}.tool")


def _unknown(book: RuleBook, name: str, key: str) -> Iterator[StoryProblem]:
    prefix, dot, _ = name.partition(".")
    families = {known.partition(".")[0] for known in book.tools if "." in known}
    if dot and prefix in book.servers:
        return  # its tools are known when it runs
    if dot and prefix in families:
        own = [known for known in book.tools if known.startswith(f"{prefix}.")]
        yield book.problem(key, f"there is no tool {name!r}; {did_you_mean(name, own)}")
    elif dot and (hint := did_you_mean(prefix, families | book.servers)).startswith("did"):
        yield book.problem(key, f"there is no skill, MCP server or OpenAPI document {prefix!r}; {hint}")
    elif dot:
        advice = "name it in story.toml, under skills, mcp or openapi, unless whoever plays brings it"
        message = f"the story has no skill, MCP server or OpenAPI document {prefix!r}; {advice}"
        yield book.problem(key, message, "warning")
    else:
        hint = did_you_mean(name, book.tools)
        advice = "" if hint.startswith("did") else f"; or write it: narratoria new tool {name} --dir tools"
        yield book.problem(key, f"there is no tool {name!r}; {hint}{advice}")


def input_problems(given: Mapping[str, Any], tool: AnyTool) -> list[tuple[str, str]]:
    """Return what the tool's manifest refuses in an input: the way to it, and why. Values with `{…}` are known only in
    play; the keys they have are known now.
    """
    try:
        tool.parse(given)
    except ArgumentsInvalid as error:
        found = dict(reversed(table_problems(error)))  # of two with one path, the first
    else:
        return []
    filled_later = list(_slotted(given))
    meant = {problem.partition("did you mean '")[2].partition("'")[0] for problem in found.values()}
    return [
        (f".{path}" if path else "", f"the tool {tool.name!r} refuses it: {problem}")
        for path, problem in reversed(found.items())
        if _is_known_now(key_path(path), problem, filled_later) and not (path in meant and path not in given)
    ]


def _is_known_now(path: KeyPath, problem: str, filled_later: list[KeyPath]) -> bool:
    """Tell if a problem stays, whatever the values with `{…}` will be: one of a key does, one of a value does not."""
    if problem.startswith("unknown key"):
        return not any(len(one) < len(path) and path[: len(one)] == one for one in filled_later)
    if problem.startswith("missing"):
        return not any(path[: len(one)] == one for one in filled_later)
    return not any(path[: len(one)] == one or one[: len(path)] == path for one in filled_later)


def _slotted(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _slotted(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _slotted(inner, (*path, number))
    elif isinstance(value, str) and slots(value):
        yield path
