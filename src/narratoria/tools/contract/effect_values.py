"""Templates in the values of an effect, filled from the call it follows.

`{"$result": path}`, `{"$input": path}` and `{"$state": path}` stand for the value at the path, the empty path for the
whole, and `$default` beside them for a missing value. `{"$literal": value}` is the value as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, get_args

from narratoria.errors import ToolValidationError
from narratoria.state import MISSING, plain
from narratoria.tools.contract.conditions import find

Source: TypeAlias = Literal["$result", "$input", "$state"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)


def fill(value: Any, read: Callable[[Source], Any]) -> Any:
    """Return `value` with its templates replaced, at every depth; `read` returns the value of a source."""
    if isinstance(value, list | tuple):
        return [fill(part, read) for part in value]
    if not isinstance(value, dict):
        return value
    if "$literal" in value:
        return value["$literal"]
    source = _source(value)
    if source is None:
        return {key: fill(part, read) for key, part in value.items()}
    found = find(read(source), value[source])
    if found is MISSING:
        found = value.get("$default", MISSING)
    if found is MISSING:
        raise ToolValidationError(
            f"{source} has nothing at {value[source]!r}; add $default for when it is missing"
        )
    return plain(found)


def check_templates(value: Any, where: str) -> None:
    """Refuse, when a tool is defined, a template that could only fail when it is called."""
    if isinstance(value, list | tuple):
        for index, part in enumerate(value):
            check_templates(part, f"{where}[{index}]")
    if not isinstance(value, dict) or "$literal" in value:
        return
    source = _source(value)
    if source is None:
        for key, part in value.items():
            check_templates(part, f"{where}.{key}")
        return
    beside = [key for key in value if key not in (source, "$default")]
    if beside:
        raise ToolValidationError(f"{where}: {source} stands alone or with $default, not with {beside[0]!r}")
    if not isinstance(value[source], str):
        raise ToolValidationError(f"{where}.{source}: expected a path, got {value[source]!r}")


def _source(value: dict[str, Any]) -> Source | None:
    return next((source for source in SOURCES if source in value), None)
