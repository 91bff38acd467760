"""YAML that somebody else wrote, read as the JSON it stands for, within bounds.

PyYAML's own loader writes `<<: [*a, *a]` out while it loads: thirty lines of that fill the memory. Here every value is
counted as it is made, from the parser's events. Aliases and merged keys are copies, keys are texts (the `200` of
`responses` is a number), a date is a text, and what JSON cannot say is refused with its line: a key twice, tags such as
`!!binary`, `.nan` and `.inf`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from narratoria import bounds

_TAG: Final = "tag:yaml.org,2002:"
_TEXTS: Final = frozenset(("str", "timestamp", "value", "merge"))  # implied by how a plain text looks
_MERGE: Final = "<<"
MAX_COPIED: Final = 200_000
"""Cap on the values that aliases and merged keys copy."""


class YamlRefused(ValueError):
    """The YAML cannot be read as JSON; the message says where and why."""


def decode_yaml(content: bytes) -> Any:
    """Decode one YAML document; raise `ValueError` if it is invalid or out of bounds."""
    import yaml  # type: ignore[import-untyped]

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(yaml, yaml.parse(content, loader)).document()
    except yaml.MarkedYAMLError as error:
        place = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise YamlRefused(f"{place}{error.problem or error}"[:500]) from None
    except yaml.YAMLError as error:
        raise YamlRefused(str(error)[:500]) from None


class _Reader:
    def __init__(self, yaml: Any, events: Iterator[Any]) -> None:
        self._yaml = yaml
        self._events = events
        self._resolver = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()
        self._anchors: dict[str, Any] = {}
        self._under_way: set[str] = set()
        self._left = bounds.MAX_VALUES
        self._copies_left = MAX_COPIED

    def document(self) -> Any:
        yaml, value, documents = self._yaml, None, 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _refused(event, "a second document; keep one in a file")
            elif isinstance(event, yaml.NodeEvent):
                value = self._value(event, 0)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        yaml = self._yaml
        self._left -= 1
        if self._left < 0 or depth > bounds.MAX_DEPTH:
            raise _out_of_bounds(event, f"more than {bounds.MAX_VALUES:,} values", depth)
        if isinstance(event, yaml.AliasEvent):
            return self._copy_of(event, depth)
        if event.anchor is not None:
            self._under_way.add(event.anchor)
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event, "seq")
            value = []
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                value.append(self._value(inner, depth + 1))
        else:
            self._check_tag(event, "map")
            value = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
            self._under_way.discard(event.anchor)
        return value

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] | None = None
        while not isinstance(key := next(self._events), self._yaml.MappingEndEvent):
            if self._is_merge(key):
                if merged is not None:
                    raise _refused(key, "a second << in one object; write one with a list")
                merged = self._merged(next(self._events), depth)
                continue
            name = self._key(key, depth)
            if name in found:
                raise _refused(key, f"the key {name!r} is there twice; keep one of the two")
            found[name] = self._value(next(self._events), depth + 1)
        return found if merged is None else {**merged, **found}

    def _key(self, event: Any, depth: int) -> str:
        value = self._value(event, depth + 1)
        if isinstance(value, dict | list):
            raise _refused(event, "a key that is no text")
        return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)

    def _is_merge(self, event: Any) -> bool:
        return (
            isinstance(event, self._yaml.ScalarEvent)
            and event.value == _MERGE
            and (event.tag == f"{_TAG}merge" or (event.tag is None and event.implicit[0]))
        )

    def _merged(self, event: Any, depth: int) -> dict[str, Any]:
        value = self._value(event, depth)
        parts = value if isinstance(value, list) else [value]
        merged: dict[str, Any] = {}
        for part in reversed(parts):  # the first one counts
            if not isinstance(part, dict):
                raise _refused(event, "<< takes an object, or a list of objects")
            merged |= part
        return merged

    def _copy_of(self, event: Any, depth: int) -> Any:
        if event.anchor in self._under_way:
            raise _refused(
                event, f"*{event.anchor} is inside of itself; aliases are copies, so write the value out"
            )
        if event.anchor not in self._anchors:
            raise _refused(event, f"*{event.anchor} has no anchor before it")

        def copied(value: Any, depth: int) -> Any:
            self._copies_left -= 1
            if self._copies_left < 0 or depth > bounds.MAX_DEPTH:
                raise _out_of_bounds(event, f"aliases that copy more than {MAX_COPIED:,} values", depth)
            if isinstance(value, dict):
                return {key: copied(one, depth + 1) for key, one in value.items()}
            return [copied(one, depth + 1) for one in value] if isinstance(value, list) else value

        return copied(self._anchors[event.anchor], depth)

    # --- scalars ---------------------------------------------------------------------------------------

    def _scalar(self, event: Any) -> Any:
        tag, is_named = event.tag, event.tag is not None and event.tag != "!"
        if not is_named:
            tag = self._resolver.resolve(self._yaml.ScalarNode, event.value, event.implicit)
        kind = tag.removeprefix(_TAG)
        if kind == "str" or (not is_named and kind in _TEXTS):
            return event.value
        if kind == "null":
            return None
        if kind not in ("int", "float", "bool"):
            raise _refused(event, f"the tag {_short(tag)}, which JSON does not have; write the value as text")
        node = self._yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        try:
            value = getattr(self._constructor, f"construct_yaml_{kind}")(node)
        except (ValueError, LookupError, OverflowError):
            raise _refused(event, f"{event.value[:80]!r} is no {kind} that can be used") from None
        if kind == "float" and not math.isfinite(value):
            raise _refused(
                event, f"the number {event.value[:80]}, which JSON does not have; write it as text"
            )
        return value

    def _check_tag(self, event: Any, kind: str) -> None:
        if event.tag not in (None, "!", f"{_TAG}{kind}"):
            raise _refused(event, f"the tag {_short(event.tag)}, which JSON does not have; leave it out")


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag


def _refused(event: Any, why: str) -> YamlRefused:
    return YamlRefused(f"line {event.start_mark.line + 1}: {why}")


def _out_of_bounds(event: Any, values: str, depth: int) -> bounds.OutOfBounds:
    levels = f"nested deeper than {bounds.MAX_DEPTH} levels"
    found = levels if depth > bounds.MAX_DEPTH else values
    return bounds.OutOfBounds(f"line {event.start_mark.line + 1}: {found}")
