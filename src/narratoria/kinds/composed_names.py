"""Names of compositions whose author gave none: the kind, the parts, and a digest of everything that makes them differ.

The digest covers the structure, the options and the functions (conditions, transforms). A function counts by its code
and the values it holds, so that the same source gives the same name in every process. An object without a text of its
own counts by its type alone.
"""

from __future__ import annotations

import functools
import hashlib
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from narratoria.tools.tool import Tool

_LONGEST: Final = 55  # of the part before the digest; the whole is a tool's name, of 64 at most
_DEEPEST: Final = 8  # of functions that hold functions


def composed_name(kind: str, parts: Iterable[Tool[Any, Any]], made_of: Any) -> str:
    """`made_of` is the structure and the options: tools, functions, plain data, in lists and mappings."""
    digest = hashlib.sha256(_text(made_of, _DEEPEST).encode()).hexdigest()[:8]
    shown = re.sub(
        r"[^a-z0-9_-]", "_", "_".join([kind, *(tool.name for tool in parts)])
    )  # a server's have more
    return f"{shown[:_LONGEST]}_{digest}"


def _text(value: Any, deep: int) -> str:
    """A text that is equal for what does the same, in every process."""
    if deep == 0:
        return type(value).__qualname__
    below = functools.partial(_text, deep=deep - 1)
    if isinstance(value, Tool):
        return f"tool {value.name}"
    if isinstance(value, types.FunctionType):
        empty = types.CellType()
        held = [cell.cell_contents for cell in value.__closure__ or () if cell != empty]
        return f"function {value.__module__} {below([value.__code__, value.__defaults__, value.__kwdefaults__, held])}"
    if isinstance(value, types.CodeType):
        return f"code {value.co_qualname} {value.co_code.hex()} {value.co_names} {below(value.co_consts)}"
    if isinstance(value, types.MethodType):
        return f"method {below([value.__self__, value.__func__])}"
    if isinstance(value, functools.partial):
        return f"partial {below([value.func, value.args, value.keywords])}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{below(key)}: {below(child)}' for key, child in value.items())}}}"
    if isinstance(value, set | frozenset):
        return f"set {sorted(map(below, value))}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(below, value))}]"
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__qualname__} {below([getattr(value, key) for key in value.__struct_fields__])}"
    text = repr(value)
    return f"{type(value).__module__}.{type(value).__qualname__}" if " at 0x" in text else text
