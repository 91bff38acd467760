"""Problems of arguments on which the validator would list too many.

The validator lists every error at every alternative before it gives the first: an array of 200,000 wrong items takes
seconds, and a wrong leaf ten levels down a tree of alternatives minutes. Whether a value fits it tells at once. So
where the list might be long, the parts that do not fit are looked up first, and only those are explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from narratoria.errors import ArgumentsInvalid
from narratoria.tools.schema.bounded_patterns import key_matcher
from narratoria.tools.schema.excerpts import show, show_path
from narratoria.tools.schema.problems import (
    KeyRules,
    as_json,
    below,
    compile_schema,
    find_problems,
    known_keys,
)
from narratoria.tools.schema.references import HOMES, Place, References, children

MAX_VISITS: Final = 5_000
"""Cap on the parts of the schema that the validator visits to list the errors of one check: about 0.3 s."""
MAX_UNFOLDED: Final = 2_000_000
"""Cap on these visits to tell if a value fits, for a schema that unfolds to more: about 0.2 s."""
_WORTH: Final = 20  # visits; with fewer left nothing more is explained
_LONG: Final = 2_000  # characters that weigh as one visit, because an error holds a copy of its value
_OPTIONS: Final = 50  # options of an enum that weigh as one visit

_SHALLOW: Final = frozenset(
    ("type", "required", "dependentRequired", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
     "multipleOf", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "minProperties",
     "maxProperties", "propertyNames")
)  # fmt: skip
_WHOLE: Final = frozenset(("enum", "const", "uniqueItems"))
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("not", "if", "then", "else")

Explain: TypeAlias = Callable[[Place, Any], list[str]]
IsMeant: TypeAlias = Callable[[Place, Any], bool]


def narrowed(
    references: References, place: Place, value: Any, explain: Explain, is_meant: IsMeant
) -> Iterator[str] | None:
    """Return the problems of a value by a place, found part by part; None if the validator may list them itself."""
    visits = _Visits(references, MAX_VISITS)
    if visits.of(place, value) is not None:
        return None
    return _Narrowing(references, explain, is_meant).unless_it_fits(place, as_json(value), ())


def unfolds(references: References) -> bool:
    """Tell if the schema refers to its parts so often that a check of a small value might not end.

    The validator remembers what it found only for a part that refers to itself.
    """
    counts: dict[int, int] = {}

    def count(place: Place) -> int:
        if not isinstance(place.node, dict):
            return 1
        if (known := counts.get(id(place.node))) is None:
            counts[id(place.node)] = 1  # a reference to itself
            parts = [
                references.enter(place, child)
                for keyword, _, child in children(place.node)
                if keyword not in HOMES
            ]
            known = counts[id(place.node)] = 1 + sum(map(count, (*parts, *references.referred(place))))
        return known

    try:
        return count(references.top) > MAX_UNFOLDED
    except RecursionError:
        return True


def check_visits(references: References, value: Any) -> None:
    """Refuse a value on which the validator would visit too many parts of a schema that unfolds."""
    if _Visits(references, MAX_UNFOLDED).of(references.top, value) is None:
        raise ArgumentsInvalid(
            [
                f"arguments: the schema has more than {MAX_UNFOLDED:,} parts that judge them; give smaller arguments"
            ]
        )


class _TooMany(Exception):
    pass


class _Visits:
    """Counts the visits of the validator, as it makes them to list all errors. Stops at a limit."""

    def __init__(self, references: References, limit: int) -> None:
        self._references = references
        self._limit = limit
        self._known: dict[tuple[int, tuple[str, ...], int], int] = {}
        self._weights: dict[int, int] = {}

    def of(self, place: Place, value: Any) -> int | None:
        """Return an upper bound on the visits; None if they are too many."""
        try:
            return self._of(place, value)
        except (_TooMany, RecursionError):
            return None

    def _of(self, place: Place, value: Any) -> int:
        if not isinstance(place.node, dict):
            return 1
        visit = (id(place.node), place.scope, id(value))
        if (known := self._known.get(visit)) is not None:
            return known
        self._known[visit] = 0  # a reference to itself
        total = self._weight(value) + len(place.node.get("enum", ())) // _OPTIONS
        for child, inside in self._below(place, value):
            total += self._of(self._references.enter(place, child), inside)
            if total > self._limit:
                raise _TooMany
        for target in self._references.referred(place):
            total += self._of(target, value)
        if total > self._limit:
            raise _TooMany
        self._known[visit] = total
        return total

    def _below(self, place: Place, value: Any) -> Iterator[tuple[Any, Any]]:
        node = place.node
        for keyword in _LISTS:
            yield from ((part, value) for part in node.get(keyword, ()))
        yield from ((node[keyword], value) for keyword in _SINGLES if keyword in node)
        if isinstance(value, dict):
            yield from (
                (part, value) for key, part in node.get("dependentSchemas", {}).items() if key in value
            )
            yield from ((part, inside) for _, part, inside in _members(node, value))
        elif isinstance(value, list | tuple):
            yield from ((part, inside) for _, part, inside in _items(node, value))
            if "contains" in node:
                yield from ((node["contains"], inside) for inside in value)

    def _weight(self, value: Any) -> int:
        """One, and more for a large value."""
        if isinstance(value, str):
            return 1 + len(value) // _LONG
        if not isinstance(value, dict | list | tuple) or not value:
            return 1
        if (known := self._weights.get(id(value))) is None:
            inside = value.values() if isinstance(value, dict) else value
            known = 1 + (len(value) + 2 * sum(map(self._weight, inside))) // 8
            if known > self._limit:
                raise _TooMany
            self._weights[id(value)] = known
        return known


def _members(node: dict[str, Any], value: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The keys of an object, with each schema that may judge their values."""
    declared, patterns = node.get("properties", {}), node.get("patternProperties", {})
    rest = [node[keyword] for keyword in ("additionalProperties", "unevaluatedProperties") if keyword in node]
    for key, inside in value.items():
        if key in declared:
            yield key, declared[key], inside
        yield from ((key, part, inside) for part in patterns.values())
        if key not in declared:
            yield from ((key, part, inside) for part in rest)


def _items(node: dict[str, Any], value: Any) -> Iterator[tuple[int, Any, Any]]:
    first = node.get("prefixItems", ())
    rest = node.get("items", node.get("unevaluatedItems"))
    for index, inside in enumerate(value):
        if index < len(first):
            yield index, first[index], inside
        elif rest is not None:
            yield index, rest, inside


class _Narrowing:
    def __init__(self, references: References, explain: Explain, is_meant: IsMeant) -> None:
        self._references = references
        self._explain = explain
        self._is_meant = is_meant
        self._left = MAX_VISITS
        self._entered: set[tuple[int, int]] = set()
        self._patterns: dict[str, Callable[[str], bool]] = {}

    def lines(self, place: Place, value: Any, path: tuple[str | int, ...]) -> Iterator[str]:
        """Explain why a value does not fit a place."""
        if self._left < _WORTH or (visit := (id(place.node), id(value))) in self._entered:
            return
        self._entered.add(visit)
        visits = _Visits(self._references, self._left).of(place, value)
        if visits is not None:
            self._left -= visits
            yield from (below(path, line) for line in self._explain(place, value))
            return
        found = False
        for line in self._of_parts(place, value, path):
            found = True
            yield line
        if not found and self._left >= _WORTH:
            yield f"{show_path(path) or 'arguments'}: does not fit the schema, got {show(value)}"

    def _of_parts(self, place: Place, value: Any, path: tuple[str | int, ...]) -> Iterator[str]:
        node, enter = place.node, self._references.enter
        if not isinstance(node, dict):
            return
        yield from (below(path, line) for line in self._shallow(node, value))
        for key, part, child in self._inside(node, value):
            if self._left < _WORTH:
                return
            yield from self.unless_it_fits(enter(place, part), child, (*path, key))
        for part in self._references.referred(place):
            yield from self.unless_it_fits(part, value, path)
        for part in node.get("allOf", ()):
            yield from self.unless_it_fits(enter(place, part), value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                branches = [enter(place, part) for part in node[keyword]]
                yield from self._of_alternatives(branches, keyword == "oneOf", value, path)
        if "if" in node:
            holds = self._references.accepts(enter(place, node["if"]), value)
            branch = enter(place, node.get("then" if holds else "else", True))
            yield from self.unless_it_fits(branch, value, path)
        for key, part in node.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and key in value:
                yield from self.unless_it_fits(enter(place, part), value, path)

    def _inside(self, node: dict[str, Any], value: Any) -> Iterator[tuple[str | int, Any, Any]]:
        """The parts of a value, with the schemas that surely judge them. Unknown keys are told with the object."""
        if isinstance(value, dict):
            declared, rest = node.get("properties", {}), node.get("additionalProperties", True)
            for key, child in value.items():
                said = [declared[key]] if key in declared else []
                said += [
                    part
                    for pattern, part in node.get("patternProperties", {}).items()
                    if self._matches(pattern, key)
                ]
                if not said and rest is not False:
                    said = [rest]
                yield from ((key, part, child) for part in said)
        elif isinstance(value, list):
            yield from _items({**node, "unevaluatedItems": True}, value)

    def _matches(self, pattern: str, key: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = key_matcher(pattern)
        return self._patterns[pattern](key)

    def unless_it_fits(self, place: Place, value: Any, path: tuple[str | int, ...]) -> Iterator[str]:
        if not self._references.accepts(place, value):
            yield from self.lines(place, value, path)

    def _of_alternatives(
        self, branches: list[Place], only_one: bool, value: Any, path: tuple[str | int, ...]
    ) -> Iterator[str]:
        here = show_path(path) or "arguments"
        fitting = sum(self._references.accepts(one, value) for one in branches)
        if fitting > 1 and only_one:
            yield f"{here}: fits {fitting} of {len(branches)} alternatives, must fit exactly one; got {show(value)}"
        if fitting:
            return
        meant = [one for one in branches if self._is_meant(one, value)]
        if len(meant) == 1:
            yield from self.lines(meant[0], value, path)
        else:
            yield f"{here}: fits none of {len(branches)} alternatives, got {show(value)}"

    def _shallow(self, node: dict[str, Any], value: Any) -> list[str]:
        """Return the problems of a value itself, not of what is inside."""
        own = {keyword: node[keyword] for keyword in _SHALLOW & node.keys()}
        if "Ref" in (names := repr(own.get("propertyNames"))) or "$ref" in names:
            del own["propertyNames"]
        if node.get("additionalProperties") is False:
            own["additionalProperties"] = False
            for keyword in ("properties", "patternProperties"):
                own[keyword] = dict.fromkeys(node.get(keyword, ()), True)
        found = _problems(own, node, _outside(value)) if own else []
        whole = {keyword: node[keyword] for keyword in _WHOLE & node.keys()}
        if whole and not compile_schema(whole, "").is_valid(value):
            found += _problems(whole, node, value)
        return found


def _problems(schema: dict[str, Any], node: dict[str, Any], value: Any) -> list[str]:
    return find_problems(compile_schema(schema, ""), lambda error: KeyRules(known_keys(node)), value)


def _outside(value: Any) -> Any:
    """Return a container without what its parts contain."""
    if isinstance(value, dict):
        return {key: "…" if isinstance(one, dict | list | str) else one for key, one in value.items()}
    if isinstance(value, list):
        return ["…" if isinstance(one, dict | list | str) else one for one in value]
    return value
