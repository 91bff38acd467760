"""Parameters as OpenAPI writes them into an address, a header or a form: `style` and `explode`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

RESERVED: Final = ":/?#[]@!$&'()*+,;="
DEFAULT_STYLES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
Escape = Callable[[str], str]


def escaped(text: str) -> str:
    return quote(text, safe="")


def escaped_but_reserved(text: str) -> str:
    return quote(text, safe="".join(set(RESERVED) - set("#&+[]")))


def as_is(text: str) -> str:
    return text


def text_of(value: Any) -> str:
    """Return a value as a text: what JSON writes, and a text without quotes."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return msgspec.json.encode(value).decode()


def in_path(name: str, value: Any, style: str, explode: bool) -> str:
    """Return what stands in an address for `{name}`."""
    items, pairs = _parts(value, escaped)
    if style == "matrix":
        if pairs is not None:
            if explode:
                return "".join(f";{key}={one}" for key, one in pairs)
            return f";{name}={','.join(part for pair in pairs for part in pair)}"
        if isinstance(value, list) and explode:
            return "".join(f";{name}={one}" for one in items)
        joined = ",".join(items)
        return f";{name}={joined}" if joined else f";{name}"
    if style == "label":
        return "." + ("." if explode else ",").join(_simple(items, pairs, explode))
    return ",".join(_simple(items, pairs, explode))


def in_header(value: Any, explode: bool) -> str:
    items, pairs = _parts(value, as_is)
    return ",".join(_simple(items, pairs, explode))


def in_query(
    name: str, value: Any, style: str, explode: bool, escape: Escape = escaped
) -> list[tuple[str, str]]:
    """Return the pairs of a query, or of a form, that say a value; both halves are escaped."""
    key = escaped(name)
    items, pairs = _parts(value, escape)
    if style == "deepObject" and isinstance(value, Mapping | list):
        return list(_deep(key, value, escape))
    if pairs is not None:
        if explode and style == "form":
            return pairs
        return [(key, _DELIMITERS.get(style, ",").join(part for pair in pairs for part in pair))]
    if isinstance(value, list):
        if explode:
            return [(key, one) for one in items]
        return [(key, _DELIMITERS.get(style, ",").join(items))]
    return [(key, items[0])]


_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


def _deep(key: str, value: Any, escape: Escape) -> Any:
    """`name[key]=value`; deeper ones, which the specification leaves open, as most servers read them."""
    if isinstance(value, Mapping):
        for inner, one in value.items():
            yield from _deep(f"{key}%5B{escaped(str(inner))}%5D", one, escape)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            nested = isinstance(one, Mapping | list)
            yield from _deep(f"{key}%5B{index if nested else ''}%5D", one, escape)
    else:
        yield key, escape(text_of(value))


def _parts(value: Any, escape: Escape) -> tuple[list[str], list[tuple[str, str]] | None]:
    if isinstance(value, Mapping):
        return [], [(escape(str(key)), escape(text_of(one))) for key, one in value.items()]
    if isinstance(value, list):
        return [escape(text_of(one)) for one in value], None
    return [escape(text_of(value))], None


def _simple(items: list[str], pairs: list[tuple[str, str]] | None, explode: bool) -> list[str]:
    if pairs is None:
        return items
    return [f"{key}={one}" for key, one in pairs] if explode else [part for pair in pairs for part in pair]
