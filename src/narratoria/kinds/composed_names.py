"""Names of compositions whose author gave none: the kind, the parts, and a digest of everything that makes them differ.

The digest covers the structure, the options and the functions (conditions, transforms), and of each part what it
declares and its handler. A function counts by its code, the values it holds and the globals it names, so that the same
source gives the same name in every process. An object without a text of its own counts by its type and its fields. Of
globals only constants and code count: a program keeps in the others what differs from run to run.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from narratoria.tools.contract import Compensation, Effect, Precondition
from narratoria.tools.tool import Tool

_LONGEST: Final = 55  # of the part before the digest; the whole is a tool's name, of 64 at most
_DEEPEST_OBJECT: Final = 3  # of objects without a text that hold each other
_DEEPEST: Final = 200  # of values that hold values; what is deeper counts by its type alone

_TELLING: Final = (str, bytes, int, float, complex, types.FunctionType, type, Tool)


def composed_name(kind: str, parts: Iterable[Tool[Any, Any]], made_of: Any) -> str:
    """`made_of` is the structure and the options: tools, functions, plain data, in lists and mappings."""
    digest = hashlib.sha256(_Texts().of(made_of).encode()).hexdigest()[:8]
    shown = re.sub(
        r"[^a-z0-9_-]", "_", "_".join([kind, *(tool.name for tool in parts)])
    )  # a server's have more
    return f"{shown[:_LONGEST]}_{digest}"


class _Texts:
    """Texts that are equal for what does the same, in every process."""

    def __init__(self) -> None:
        self._within: list[int] = []  # the ids of the values that hold the present one
        self._objects = 0  # objects without a text that hold the present value
        self._tools: dict[int, str] = {}
        self._functions: dict[int, str] = {}  # by id: one held in many places is read once

    def of(self, value: Any) -> str:
        if id(value) in self._within:
            return f"the value {len(self._within) - self._within.index(id(value))} above"
        if len(self._within) == _DEEPEST:
            return type(value).__qualname__
        self._within.append(id(value))
        try:
            return self._read(value)
        finally:
            self._within.pop()

    def _read(self, value: Any) -> str:
        if isinstance(value, Tool):
            return self._tool(value)
        if isinstance(value, Effect | Precondition | Compensation):
            declared = [getattr(value, one.name) for one in dataclasses.fields(value)]
            return f"{type(value).__qualname__} {self.of(declared)}"
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.CodeType):
            return (
                f"code {value.co_qualname} {value.co_code.hex()} {value.co_names} {self.of(value.co_consts)}"
            )
        if isinstance(value, types.MethodType):
            return f"method {self.of([value.__self__, value.__func__])}"
        if isinstance(value, functools.partial):
            return f"partial {self.of([value.func, value.args, value.keywords])}"
        if isinstance(value, Mapping):
            pairs = [f"{self.of(key)}: {self.of(child)}" for key, child in value.items()]
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, set | frozenset):
            return f"set {sorted(map(self.of, value))}"
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.of, value))}]"
        if isinstance(value, msgspec.Struct):
            fields = [getattr(value, key) for key in value.__struct_fields__]
            return f"{type(value).__qualname__} {self.of(fields)}"
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        text = repr(value)
        return self._object(value) if " at 0x" in text else text

    def _object(self, value: Any) -> str:
        """Return the text of an object that has none of its own: its type and its fields, not too deep."""
        class_ = type(value)
        name = f"{class_.__module__}.{class_.__qualname__}"
        if self._objects == _DEEPEST_OBJECT:
            return name
        slots = [one for base in class_.__mro__ for one in _names(vars(base).get("__slots__", ()))]
        fields = {one: getattr(value, one) for one in slots if one[:2] != "__" and hasattr(value, one)}
        fields |= getattr(value, "__dict__", {})
        self._objects += 1
        try:
            return f"{name} {self.of(fields)}"
        finally:
            self._objects -= 1

    def _globals(self, function: types.FunctionType) -> dict[str, Any]:
        """Return the globals that a function names and that say something about what it does."""
        known = function.__globals__
        return {name: known[name] for name in sorted(_named(function.__code__)) if _tells(known.get(name))}

    def _tool(self, tool: Tool[Any, Any]) -> str:
        if id(tool) not in self._tools:
            made_of: list[Any] = [
                tool.description,
                tool.parameters,
                tool.timeout,
                tool.retry,
                tool.preconditions,
                tool.effects,
            ]
            if tool.kind.is_function or tool.kind.made_of_tools:  # others are told apart by what they declare
                made_of.append(tool.handler)
            digest = hashlib.sha256(self.of(made_of).encode()).hexdigest()
            self._tools[id(tool)] = f"tool {tool.name} {digest}"
        return self._tools[id(tool)]

    def _function(self, function: types.FunctionType) -> str:
        if id(function) not in self._functions:
            empty = types.CellType()
            held = [cell.cell_contents for cell in function.__closure__ or () if cell != empty]
            own = [function.__code__, function.__defaults__, function.__kwdefaults__, held]
            made_of = self.of([*own, self._globals(function)])
            digest = hashlib.sha256(f"{function.__module__} {made_of}".encode()).hexdigest()
            self._functions[id(function)] = f"function {digest}"
        return self._functions[id(function)]


def _named(code: types.CodeType) -> set[str]:
    """Return the names of globals and attributes in a function's code, also in functions it defines."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return {*code.co_names}.union(*map(_named, inner))


def _tells(value: Any) -> bool:
    """Tell if a global is a constant or code: a list or a mapping may have changed when it is named the next time."""
    if isinstance(value, tuple | frozenset):
        return all(map(_tells, value))
    return isinstance(value, _TELLING)


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else [*slots]
