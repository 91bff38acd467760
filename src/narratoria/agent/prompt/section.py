"""Sections: a piece of a prompt with a key, the text that explains some tools, and these tools themselves.

A tool lives where it is documented. A section is shown in full or by its summary, enabled or not; a section that is
not shown brings no tools.
"""
# 002, "Section-first".

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar

import msgspec

from narratoria.agent.prompt.placeholders import Template
from narratoria.errors import PromptValidationError, unwritten
from narratoria.tools.tool import Tool

P = TypeVar("P")
KEY_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class SectionVisibility(Enum):
    """The part of a section that is shown: the whole text, or its summary."""

    FULL = "full"
    SUMMARY = "summary"


Enabled: TypeAlias = bool | Callable[[], bool] | Callable[[Any], bool]
Visibility: TypeAlias = (
    SectionVisibility | Callable[[], SectionVisibility] | Callable[[Any], SectionVisibility]
)


class Section(Generic[P]):
    """The base of all sections. A subclass gives the text, by `body`.

    `Section[Params]` takes its values from the `Params` that the prompt is bound to; a section that names no
    params uses those of the section around it.
    """

    params_type: ClassVar[type[Any] | None] = None

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item: Any) -> Any:
            if isinstance(item, TypeVar) or item is Any:
                return super().__class_getitem__(item)
            if fields_of(item) is None:
                raise PromptValidationError(
                    f"{cls.__name__}[…]: params are a dataclass or a Struct, got {item!r}"
                )
            return type(cls.__name__, (cls,), {"params_type": item, "__module__": cls.__module__})

    def __init__(
        self,
        *,
        title: str,
        key: str,
        tools: Sequence[Tool[Any, Any]] = (),
        children: Sequence[Section[Any]] = (),
        enabled: Enabled = True,
        summary: str | None = None,
        visibility: Visibility = SectionVisibility.FULL,
        accepts_overrides: bool = True,
        default_params: P | None = None,
    ) -> None:
        if not isinstance(key, str) or not KEY_PATTERN.fullmatch(key):
            raise PromptValidationError(
                f"section key {key!r}: use 1-64 of a-z 0-9 _ -, beginning with a letter or digit"
            )
        if not isinstance(title, str) or not title.strip() or "\n" in title:
            raise PromptValidationError(f"section {key}: the title is one line of text, got {title!r}")
        for one in tools:
            if not isinstance(one, Tool):
                raise PromptValidationError(f"section {key}: {one!r} is not a tool; decorate it with @tool")
        if visibility is SectionVisibility.SUMMARY and summary is None:
            raise PromptValidationError(
                f"section {key}: it is to show its summary but has none; pass summary="
            )
        if default_params is not None and not isinstance(default_params, self.params_type or ()):
            raise PromptValidationError(
                f"section {key}: default_params is {type(default_params).__name__}, "
                f"but its params are {self.params_type.__name__ if self.params_type else 'not named'}"
            )
        self.title = title.strip()
        self.key = key
        self.tools = tuple(tools)
        self.children = tuple(children)
        self.summary = None if summary is None else Template(summary, where=f"section {key}: summary")
        self.accepts_overrides = accepts_overrides
        self.default_params = default_params
        self._enabled = enabled
        self._visibility = visibility

    def check(self, fields: frozenset[str], *, where: str) -> None:
        """Refuse, when the prompt is made, a mistake that would only show when it is rendered."""
        if self.summary is not None:
            self.summary.check(fields, where=f"{where}: summary")

    def body(self, values: dict[str, Any]) -> str:
        """The text under the title; `values` holds the fields of the params."""
        raise unwritten(self, "body")

    def is_enabled(self, params: Any) -> bool:
        """Tell if the section is part of a prompt with these params."""
        return self._enabled if isinstance(self._enabled, bool) else bool(_ask(self._enabled, params))

    def shown(self, params: Any) -> SectionVisibility:
        """Tell if the section is shown whole or as its summary; without a summary it is shown whole."""
        if isinstance(self._visibility, SectionVisibility):
            return self._visibility
        visibility: SectionVisibility = _ask(self._visibility, params)
        return visibility if self.summary is not None else SectionVisibility.FULL


class MarkdownSection(Section[P]):
    """A section whose text is a Markdown template: `$name` is replaced by the field of that name."""

    def __init__(
        self,
        *,
        title: str,
        key: str,
        template: str,
        tools: Sequence[Tool[Any, Any]] = (),
        children: Sequence[Section[Any]] = (),
        enabled: Enabled = True,
        summary: str | None = None,
        visibility: Visibility = SectionVisibility.FULL,
        accepts_overrides: bool = True,
        default_params: P | None = None,
    ) -> None:
        super().__init__(
            title=title,
            key=key,
            tools=tools,
            children=children,
            enabled=enabled,
            summary=summary,
            visibility=visibility,
            accepts_overrides=accepts_overrides,
            default_params=default_params,
        )
        self.template = Template(template, where=f"section {self.key}: template")

    def check(self, fields: frozenset[str], *, where: str) -> None:
        """Refuse a template that names a field the parameters do not have."""
        super().check(fields, where=where)
        self.template.check(fields, where=f"{where}: template")

    def body(self, values: dict[str, Any]) -> str:
        """Return the text with the values filled in."""
        return self.template.render(values)


def fields_of(params_type: Any) -> frozenset[str] | None:
    """Return the field names of a params type, or None where it is not one."""
    if dataclasses.is_dataclass(params_type) and isinstance(params_type, type):
        return frozenset(field.name for field in dataclasses.fields(params_type))
    if isinstance(params_type, type) and issubclass(params_type, msgspec.Struct):
        return frozenset(field.name for field in msgspec.structs.fields(params_type))
    return None


def _ask(question: Callable[..., Any], params: Any) -> Any:
    """Call a function with the params, or with nothing if it takes nothing."""
    return question(params) if inspect.signature(question).parameters else question()
