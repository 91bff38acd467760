"""Prompts: a tree of sections, bound to values, rendered to text and to the tools that come with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from narratoria.agent.prompt.disclosure import OPEN_SECTIONS, invitation, open_sections_tool
from narratoria.agent.prompt.overrides import PromptOverrides, redescribed
from narratoria.agent.prompt.placeholders import Template
from narratoria.agent.prompt.section import KEY_PATTERN, Section, SectionVisibility, fields_of
from narratoria.errors import ArgumentsInvalid, PromptValidationError
from narratoria.tools import schema
from narratoria.tools.tool import CallScope, Tool
from narratoria.typed_values import convert


class _Place(NamedTuple):
    """A section in its place: its path, and the section whose params it uses."""

    path: str
    depth: int
    section: Section[Any]
    params_type: type[Any] | None


@dataclass(frozen=True)
class RenderedPrompt:
    """The text and the tools a model gets. `tools` are those of the sections shown, in the order they were declared."""

    text: str
    tools: tuple[Tool[Any, Any], ...]
    sections: tuple[str, ...]  # paths shown in full
    summarised: tuple[str, ...]  # paths shown by their summary
    prompt: BoundPrompt = field(repr=False)

    def scope(self, **fields: Any) -> CallScope:
        """Return the scope to call this prompt's tools in: `context.prompt` and `context.rendered_prompt`."""
        return CallScope(prompt=self.prompt, rendered_prompt=self, **fields)


class Prompt:
    """Sections under one name. A mistake in them is refused here, with the section's path."""

    def __init__(
        self, *, ns: str, key: str, sections: Sequence[Section[Any]], name: str | None = None
    ) -> None:
        for label, value in (("ns", ns), ("key", key)):
            if not isinstance(value, str) or not all(
                KEY_PATTERN.fullmatch(part) for part in value.split("/")
            ):
                raise PromptValidationError(f"prompt {label} {value!r}: use the characters a-z 0-9 _ - and /")
        self.ns = ns
        self.key = key
        self.name = name or key
        self.sections = tuple(sections)
        self.places = tuple(self._walk(self.sections, "", 0, None))
        for place in self.places:
            place.section.check(_fields(place.params_type), where=self.where(place.path))
        self.tools = self._declared_tools()  # each with its section's path. 002: "Declaration order cached"

    def bind(self, *params: Any) -> BoundPrompt:
        """Give each params type its values, one instance per type."""
        return BoundPrompt(self, self.by_type(params))

    def render(self) -> RenderedPrompt:
        """`bind().render()`, for a prompt whose params all have defaults."""
        return self.bind().render()

    # --- the checks --------------------------------------------------------------------------------------

    def _walk(
        self, sections: Sequence[Section[Any]], above: str, depth: int, inherited: type[Any] | None
    ) -> Iterator[_Place]:
        seen: set[str] = set()
        for section in sections:
            if not isinstance(section, Section):
                raise PromptValidationError(f"{self.where(above)}: {section!r} is not a section")
            path = f"{above}.{section.key}" if above else section.key
            if section.key in seen:
                raise PromptValidationError(
                    f"{self.where(path)}: two sections beside each other have this key"
                )
            seen.add(section.key)
            params_type = section.params_type or inherited
            yield _Place(path, depth, section, params_type)
            yield from self._walk(section.children, path, depth + 1, params_type)

    def _declared_tools(self) -> tuple[tuple[str, Tool[Any, Any]], ...]:
        declared: dict[str, str] = {}
        tools: list[tuple[str, Tool[Any, Any]]] = []
        for path, _, section, _ in self.places:
            for tool in section.tools:
                if tool.name == OPEN_SECTIONS:
                    raise PromptValidationError(
                        f"{self.where(path)}: the tool name {OPEN_SECTIONS!r} is ours"
                    )
                if tool.name in declared:
                    raise PromptValidationError(
                        f"{self.where(path)}: the tool {tool.name!r} is already declared in section "
                        f"{declared[tool.name]}; tool names are unique within a prompt"
                    )
                declared[tool.name] = path
                _check_examples(tool, where=self.where(path))
                tools.append((path, tool))
        return tuple(tools)

    @property
    def params_types(self) -> tuple[type[Any], ...]:
        """The types of params that its sections take, in order, each once."""
        return tuple(dict.fromkeys(one.params_type for one in self.places if one.params_type is not None))

    def by_type(self, params: Sequence[Any]) -> dict[type[Any], Any]:
        """Params by their type; one that no section takes, or a second of a type, is refused."""
        wanted = self.params_types
        given: dict[type[Any], Any] = {}
        for one in params:
            if type(one) not in wanted:
                known = ", ".join(sorted(each.__name__ for each in wanted)) or "none"
                raise PromptValidationError(
                    f"prompt {self.ns}/{self.key}: no section takes {type(one).__name__}; params are {known}"
                )
            if type(one) in given:
                raise PromptValidationError(
                    f"prompt {self.ns}/{self.key}: {type(one).__name__} is given twice"
                )
            given[type(one)] = one
        return given

    def where(self, path: str) -> str:
        """The name of a section, or of the prompt for "", in a message."""
        return f"prompt {self.ns}/{self.key}: section {path}" if path else f"prompt {self.ns}/{self.key}"


@dataclass(frozen=True)
class BoundPrompt:
    """A prompt with its values, its overrides and the sections the model has opened; never changed."""

    prompt: Prompt
    params: Mapping[type[Any], Any]
    opened: frozenset[str] = frozenset()
    overrides: PromptOverrides = field(default_factory=PromptOverrides)

    def bind(self, *params: Any) -> BoundPrompt:
        """Add or replace values."""
        return dataclasses.replace(self, params={**self.params, **self.prompt.by_type(params)})

    def open(self, *paths: str) -> BoundPrompt:
        """Show these sections in full: call this with the keys of a `VisibilityExpansionRequired`."""
        self._known(paths)
        return dataclasses.replace(self, opened=self.opened | frozenset(paths))

    def override(self, overrides: PromptOverrides) -> BoundPrompt:
        """Replace texts and descriptions where `accepts_overrides` allows it; anything else is refused."""
        self._known(overrides.sections)
        by_path = {place.path: place for place in self.prompt.places}
        for path, text in overrides.sections.items():
            where, place = self.prompt.where(path), by_path[path]
            if not place.section.accepts_overrides:
                raise PromptValidationError(f"{where}: it does not accept overrides; remove its override")
            Template(text, where=where).check(_fields(place.params_type), where=f"{where}: override")
        tools = {tool.name: tool for _, tool in self.prompt.tools}
        for name, description in overrides.tools.items():
            where = self.prompt.where("")
            if name not in tools:
                raise PromptValidationError(
                    f"{where}: there is no tool {name!r} to describe; it has {sorted(tools)}"
                )
            redescribed(tools[name], description, where=where)
        return dataclasses.replace(self, overrides=overrides)

    def render(self) -> RenderedPrompt:
        """Return the text of the prompt, and the tools of the sections it shows."""
        texts: list[str] = []
        shown: list[str] = []
        summarised: list[str] = []
        hidden: str | None = None
        for place in self.prompt.places:
            if hidden is not None and place.path.startswith(hidden):
                continue
            hidden = None
            params, values = self._values(place)
            if not place.section.is_enabled(params):
                hidden = f"{place.path}."
                continue
            if self._is_summarised(place, params):
                hidden = f"{place.path}."
                summarised.append(place.path)
            else:
                shown.append(place.path)
            texts.append(self._text(place, values, full=hidden is None))
        tools = self._tools(frozenset(shown))
        if summarised:
            tools.append(open_sections_tool(tuple(summarised)))
        return RenderedPrompt("\n\n".join(texts), tuple(tools), tuple(shown), tuple(summarised), self)

    def _tools(self, shown: frozenset[str]) -> list[Tool[Any, Any]]:
        descriptions = self.overrides.tools
        return [
            redescribed(tool, descriptions[tool.name], where=path) if tool.name in descriptions else tool
            for path, tool in self.prompt.tools
            if path in shown
        ]

    def _is_summarised(self, place: _Place, params: Any) -> bool:
        if any(opened == place.path or opened.startswith(f"{place.path}.") for opened in self.opened):
            return False
        return place.section.shown(params) is SectionVisibility.SUMMARY

    def _text(self, place: _Place, values: dict[str, Any], *, full: bool) -> str:
        section = place.section
        heading = f"{'#' * min(place.depth + 2, 6)} {section.title}"
        if not full:
            assert section.summary is not None  # noqa: S101 - a section without one is never summarised
            return "\n\n".join([heading, section.summary.render(values), invitation(place.path)])
        override = self.overrides.sections.get(place.path)
        body = Template(override, where=place.path).render(values) if override else section.body(values)
        return "\n\n".join(part for part in [heading, body, *map(_examples, section.tools)] if part)

    def _values(self, place: _Place) -> tuple[Any, dict[str, Any]]:
        params_type = place.params_type
        if params_type is None:
            return None, {}
        params = self.params.get(params_type, place.section.default_params)
        if params is None:
            try:
                params = params_type()
            except TypeError:
                raise PromptValidationError(
                    f"{self.prompt.where(place.path)}: it needs {params_type.__name__}; "
                    f"bind the prompt to one before rendering it"
                ) from None
        return params, {name: getattr(params, name) for name in _fields(params_type)}

    def _known(self, paths: Any) -> None:
        known = {place.path for place in self.prompt.places}
        for path in paths:
            if path not in known:
                raise PromptValidationError(
                    f"{self.prompt.where('')}: there is no section {path!r}; it has {sorted(known)}"
                )


def _fields(params_type: type[Any] | None) -> frozenset[str]:
    return fields_of(params_type) or frozenset()


def _check_examples(tool: Tool[Any, Any], *, where: str) -> None:
    """Check examples against the params and result types, down to their fields."""
    # 002, "Prompt Rendering".
    for index, example in enumerate(tool.examples):
        try:
            tool.parse(example.arguments)
            if fields_of(tool.result_type) is not None and example.output is not None:
                convert(schema.dump(example.output), tool.result_type)
        except ArgumentsInvalid as problem:
            raise PromptValidationError(
                f"{where}: tool {tool.name!r}: examples[{index}].input: {problem}"
            ) from None
        except msgspec.ValidationError as problem:
            raise PromptValidationError(
                f"{where}: tool {tool.name!r}: examples[{index}].output: {problem}"
            ) from None


def _examples(tool: Tool[Any, Any]) -> str:
    """Return a tool's examples as text: no provider has a field for them."""
    if not tool.examples:
        return ""
    lines = [f"Examples of `{tool.name}`:", ""]
    for example in tool.examples:
        gives = "" if example.output is None else f" gives `{schema.dump_json(example.output)}`"
        lines.append(f"- {example.description}: `{schema.dump_json(example.arguments)}`{gives}")
    return "\n".join(lines)
