"""The arguments of a tool made of tools: which part gets which of them.

A part gets the keys that its own schema names. A part that accepts any key gets all of them; one that accepts others of
a certain form gets those that no part names. A key that no part accepts is refused. Each part fills in its own
defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from narratoria.errors import ArgumentsInvalid
from narratoria.events import JsonObject
from narratoria.tools.schema.copying import copied
from narratoria.tools.schema.outline import Outline, together
from narratoria.tools.schema.problems import as_json, as_object, known_keys, tell_unknown_keys
from narratoria.tools.schema.unknown_keys import KeysOfTop, Others
from narratoria.tools.tool import Tool

AnyTool = Tool[Any, Any]


class SharedArguments:
    """The arguments of a whole and of its parts. `checked` are the parts that surely run with them: their arguments are
    checked before anything runs.
    """

    def __init__(
        self, parts: Iterable[AnyTool], checked: Sequence[AnyTool], *, alternatives: bool = False
    ) -> None:
        self._outlines = _outlines(parts)
        self._checked = frozenset(checked)
        self._alternatives = alternatives
        self.parameters = self._describe()

    def _describe(self) -> JsonObject:
        """The JSON Schema of the whole, for those who call it."""
        outlines = self._outlines.values()
        merged: JsonObject = {
            "type": "object",
            "properties": self._merged([one.properties for one in outlines]),
        }
        if patterns := self._merged([one.patterns for one in outlines]):
            merged["patternProperties"] = patterns
        if required := sorted({key for tool in self._checked for key in self._outlines[tool].required}):
            merged["required"] = required
        merged["additionalProperties"] = any(one.is_open for one in outlines)
        if definitions := {key: node for one in outlines for key, node in one.definitions.items()}:
            merged["$defs"] = definitions
        return merged

    def _merged(self, declared: Sequence[Mapping[str, Any]]) -> JsonObject:
        schemas: dict[str, list[Any]] = {}
        for one in declared:
            for key, schema in one.items():
                schemas.setdefault(key, []).append(schema)
        keyword = "anyOf" if self._alternatives else "allOf"
        return {key: together(keyword, each) for key, each in schemas.items()}

    def parse(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Return the arguments as they are, without defaults, if the parts accept them."""
        given = as_object(arguments)
        if not all(isinstance(key, str) for key in given):
            raise ArgumentsInvalid(["arguments: every key must be text"])
        sorted_keys = self._sort(given)
        problems: list[str] = []
        stray = [key for key in given if not any(_accepts(keys, key) for keys in sorted_keys.values())]
        for tool, outline in self._outlines.items():
            # One that may know it, but not beside these arguments, says so best.
            near = [key for key in stray if key in outline.properties]
            if tool in self._checked or near:
                own = {**self._share(tool, given, sorted_keys), **{key: given[key] for key in near}}
                problems += _problems(tool, own)
            stray = [key for key in stray if key not in near]
        problems += tell_unknown_keys(stray, known_keys(self.parameters))
        if problems:
            raise ArgumentsInvalid(list(dict.fromkeys(problems)))
        return given

    def split(self, arguments: JsonObject) -> Callable[[AnyTool], JsonObject]:
        """Return a function from a part to its arguments: a copy, so that no part can change those of another."""
        sorted_keys = self._sort(arguments)
        return lambda tool: copied(self._share(tool, arguments, sorted_keys))

    def _sort(self, given: JsonObject) -> dict[AnyTool, KeysOfTop]:
        try:
            return {tool: outline.sort(given) for tool, outline in self._outlines.items()}
        except ValueError:  # a date or a UUID from a Python caller: judge what it is as JSON
            plain = as_json(given)
            return {tool: outline.sort(plain) for tool, outline in self._outlines.items()}

    def _share(
        self, tool: AnyTool, given: JsonObject, sorted_keys: Mapping[AnyTool, KeysOfTop]
    ) -> JsonObject:
        own = sorted_keys[tool]
        claimed = {key for keys in sorted_keys.values() for key in keys.named}
        return {
            key: value
            for key, value in given.items()
            if key in own.named
            or own.others is Others.ALL
            or (own.others is Others.SOME and key not in claimed)
        }


def _outlines(parts: Iterable[AnyTool]) -> dict[AnyTool, Outline]:
    outlines: dict[AnyTool, Outline] = {}
    labels: set[str] = set()
    for tool in parts:
        if tool not in outlines:
            label = tool.name if tool.name not in labels else f"{tool.name}.{len(outlines) + 1}"
            labels.add(label)
            outlines[tool] = Outline(tool.parameters, label)
    return outlines


def _accepts(keys: KeysOfTop, key: str) -> bool:
    return key in keys.named or keys.others is not Others.NONE


def _problems(tool: AnyTool, arguments: JsonObject) -> Sequence[str]:
    try:
        tool.parse(arguments)
    except ArgumentsInvalid as error:
        return error.problems
    return ()
