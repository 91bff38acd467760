"""Prompts: those of a folder `prompt/`, and those a program made of sections."""

from __future__ import annotations

import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from narratoria import bounds
from narratoria.agent.prompt import Prompt
from narratoria.agent.prompt.placeholders import Template
from narratoria.errors import PromptValidationError
from narratoria.events import JsonObject
from narratoria.typed_values import convert

FOLDER: Final = "prompt"
LARGEST: Final = 256 * 1024
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Argument:
    """An argument of a prompt."""

    name: str
    description: str | None = None
    required: bool = True
    values: tuple[str, ...] = ()  # all there are, if they are few


@dataclass(frozen=True)
class OfferedPrompt:
    """A prompt as MCP offers it. `messages` gives its text, or its messages as MCP writes them."""

    name: str
    messages: Callable[[Mapping[str, str]], str | list[JsonObject] | Awaitable[str | list[JsonObject]]]
    description: str | None = None
    title: str | None = None
    arguments: tuple[Argument, ...] = ()

    def data(self) -> JsonObject:
        """Return the prompt as MCP lists it."""
        listed: JsonObject = {"name": self.name}
        if self.title is not None:
            listed["title"] = self.title
        if self.description is not None:
            listed["description"] = self.description
        if self.arguments:
            listed["arguments"] = [
                {
                    "name": one.name,
                    **({"description": one.description} if one.description else {}),
                    "required": one.required,
                }
                for one in self.arguments
            ]
        return listed


class Prompts:
    """The prompts of a server, in the order of their names. `more` gives further ones, as they are now; a name that is
    taken stays with its owner.
    """

    def __init__(
        self,
        offered: Iterable[OfferedPrompt] = (),
        more: Callable[[], Iterable[OfferedPrompt]] | None = None,
    ) -> None:
        self._more = more
        self._offered: dict[str, OfferedPrompt] = {}
        for one in offered:
            if one.name in self._offered:
                raise PromptValidationError(f"two prompts are named {one.name!r}; give one another name")
            self._offered[one.name] = one

    def listed(self) -> list[JsonObject]:
        offered = self._all()
        return [offered[name].data() for name in sorted(offered)]

    def _all(self) -> dict[str, OfferedPrompt]:
        if self._more is None:
            return self._offered
        return {one.name: one for one in self._more()} | self._offered

    async def get(self, name: str, arguments: Mapping[str, str]) -> JsonObject:
        """The messages of a prompt, its arguments filled in."""
        prompt = self._all().get(name)
        if prompt is None:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no prompt {name!r}; prompts/list has those there are"
            )
        lacking = [one.name for one in prompt.arguments if one.required and one.name not in arguments]
        if lacking:
            raise MCPError(types.INVALID_PARAMS, f"prompt {name!r} needs {', '.join(lacking)}")
        try:
            made = prompt.messages(arguments)
            if isinstance(made, Awaitable):
                made = await made
        except (PromptValidationError, msgspec.ValidationError) as error:
            raise MCPError(types.INVALID_PARAMS, f"prompt {name!r}: {error}") from None
        if isinstance(made, str):
            made = [{"role": "user", "content": {"type": "text", "text": made}}]
        answer: JsonObject = {"messages": made}
        if prompt.description is not None:
            answer["description"] = prompt.description
        return answer

    def complete(self, name: str, argument: str, typed: str) -> list[str]:
        """The values of an argument that begin with what was typed."""
        prompt = self._offered.get(name)
        found = [one for one in prompt.arguments if one.name == argument] if prompt is not None else []
        return [value for one in found for value in one.values if value.lower().startswith(typed.lower())]


def prompt_of_sections(prompt: Prompt) -> OfferedPrompt:
    """A prompt of a program: its arguments are the fields of its params."""
    types_ = prompt.params_types

    def render(given: Mapping[str, str]) -> str:
        values = []
        for params_type in types_:
            known = {one.name: given[one.name] for one in _arguments(params_type) if one.name in given}
            if known or all(not one.required for one in _arguments(params_type)):
                values.append(convert(known, params_type, strict=False))
        return prompt.bind(*values).render().text

    arguments = {one.name: one for params_type in types_ for one in _arguments(params_type)}
    title = prompt.sections[0].title if prompt.sections else None
    return OfferedPrompt(
        f"{prompt.ns}.{prompt.key}".replace("/", "."), render, title, prompt.name, tuple(arguments.values())
    )


def _arguments(params_type: Any) -> list[Argument]:
    hints = typing.get_type_hints(params_type)
    if isinstance(params_type, type) and issubclass(params_type, msgspec.Struct):
        return [
            Argument(one.name, None, one.required, _values(hints.get(one.name)))
            for one in msgspec.structs.fields(params_type)
        ]
    return [
        Argument(
            one.name,
            one.metadata.get("description"),
            one.default is MISSING and one.default_factory is MISSING,
            _values(hints.get(one.name)),
        )
        for one in fields(params_type)
    ]


def _values(hint: Any) -> tuple[str, ...]:
    if typing.get_origin(hint) is Literal:
        return tuple(str(one) for one in typing.get_args(hint))
    return ("true", "false") if hint is bool else ()


def prompt_of_file(path: Path) -> OfferedPrompt:
    """A prompt that is a Markdown file: `$name` is an argument, the first heading its title, the file's name its
    name.
    """
    if not _NAME.fullmatch(path.stem):
        raise PromptValidationError(f"{path}: name it with the characters A-Z a-z 0-9 _ . - only")
    try:
        if not path.is_file():
            raise PromptValidationError(f"{path}: it is no file; a prompt is a Markdown file")
        text = bounds.read_file(path, LARGEST).decode()
    except bounds.OutOfBounds as error:
        raise PromptValidationError(f"{path}: {error}; shorten it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PromptValidationError(f"{path}: it cannot be read: {error}") from None
    template = Template(text, where=str(path))
    heading = re.match(r"\s*#+\s+(.+)", text)
    order = sorted(template.names, key=lambda name: re.search(rf"\$\{{?{name}\b", text).start())  # type: ignore[union-attr]
    return OfferedPrompt(
        path.stem,
        template.render,
        _first_paragraph(text),
        heading.group(1).strip() if heading else None,
        tuple(Argument(name) for name in order),
    )


def _first_paragraph(text: str) -> str | None:
    for part in re.split(r"\n\s*\n", text):
        line = " ".join(part.split())
        if line and not line.startswith("#"):
            return line if len(line) <= 200 else f"{line[:199]}…"
    return None


def prompts_of_folder(folder: Path, warn: Callable[[str], None] | None = None) -> list[OfferedPrompt]:
    """The prompts in the folder `prompt/` of a story or a folder of tools, if it has one. With `warn`, one that cannot
    be used is told there and left out.
    """
    found = []
    for path in sorted((folder / FOLDER).glob("*.md")):
        try:
            found.append(prompt_of_file(path))
        except PromptValidationError as error:
            if warn is None:
                raise
            warn(f"left out: {error}")
    return found
