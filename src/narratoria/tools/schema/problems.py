"""Problems of arguments, in words that name the path first: `inner.count: expected int, got "x"`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import jsonschema_rs
import msgspec

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.state import lookup
from narratoria.tools.schema.bounded_patterns import Validator, with_bounded_patterns
from narratoria.tools.schema.dumping import dump
from narratoria.tools.schema.excerpts import Path, shorten, show, show_key, show_path
from narratoria.tools.schema.tags import by_path, is_of_other_kind, tag_options, tag_paths
from narratoria.tools.schema.text_formats import WORDS

Schema: TypeAlias = dict[str, Any]


class UnknownKeys(NamedTuple):
    """The keys of one object that no schema names, and those that a schema does."""

    path: tuple[str | int, ...]
    keys: list[str]
    known: list[str]


class KeyRules(NamedTuple):
    """The keys that a schema knows where it refused one, and the check of the values of the others."""

    known: list[str]
    of_others: Callable[[Any], list[str]] | None = None


KnownKeys: TypeAlias = Callable[[jsonschema_rs.ValidationError], KeyRules]

MAX_PROBLEMS: Final = 20  # as many as a person reads; arguments may have a hundred thousand keys
MAX_LINE: Final = 2_000
# Native code below us recurses: a bottomless value would end the process, not the call.
MAX_DEPTH: Final = 100

_CONTAINERS: Final = (dict, list, tuple)
_NAMES: Final = {"integer": "int"}
_CONTAINED: Final = {"contains": "an item", "minContains": "more items", "maxContains": "fewer items"}
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "{} or more",
    "maximum": "{} or less",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}


def compile_schema(
    schema: Schema, name: str, draft: Callable[..., Any] = jsonschema_rs.Draft202012Validator
) -> Validator:
    """Return a validator that never looks outside the schema, not for a `$ref` either."""
    try:
        return with_bounded_patterns(schema, partial(draft, schema, validate_formats=True, retriever=_refuse))
    except ValueError as error:
        raise ToolValidationError(
            f"{of_tool(name)}parameters are not a JSON Schema: {_fault(error)}"
        ) from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside the schema; copy what it refers to into $defs")


def _fault(error: ValueError) -> str:
    message = getattr(error, "message", str(error))
    return f"{show_path(getattr(error, 'instance_path', ())) or 'at the top'}: {message}"


def of_tool(name: str) -> str:
    return f"tool {name!r}: " if name else ""


def as_object(arguments: Any) -> dict[str, Any]:
    """Return a copy of the arguments, if they are an object within the depth limit."""
    if type(arguments) is not dict and not isinstance(arguments, Mapping):
        raise ArgumentsInvalid([f"arguments: expected an object, got {show(arguments)}"])
    copied = dict(arguments)
    level: Any = [child for child in copied.values() if isinstance(child, _CONTAINERS)]
    depth = 1
    while level:
        if depth == MAX_DEPTH:
            raise ArgumentsInvalid([f"arguments: nested more than {MAX_DEPTH} deep"])
        level = {
            id(child): child  # a part that is shared counts once, else a small knot could take for ever
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, _CONTAINERS)
        }.values()
        depth += 1
    return copied


def fits(validator: Validator, arguments: dict[str, Any]) -> bool:
    try:
        return validator.is_valid(arguments)
    except ValueError:  # a date or a UUID from a Python caller: judge what it is as JSON
        return validator.is_valid(as_json(arguments))


def find_problems(
    validator: Validator,
    known: KnownKeys,
    arguments: Any,
    error: Exception | None = None,
    unknown: Iterable[UnknownKeys] = (),
    lines: Iterator[str] | None = None,
) -> list[str]:
    """Return every way in which the arguments do not fit, up to a readable number.

    `error` is msgspec's, for rules that a schema cannot express: 1.0 for an int, the refusal of a `__post_init__`.
    `unknown` are keys that the validator accepts. `lines` are the problems where the validator is not to list them.
    """
    try:
        errors = validator.iter_errors(arguments) if lines is None else iter(())
    except ValueError:
        if isinstance(error, msgspec.ValidationError):
            return [shorten(line, MAX_LINE) for line in from_msgspec(error, arguments)]
        arguments = as_json(arguments)
        errors = validator.iter_errors(arguments)
    wording = _Wording(known, arguments)
    lines = itertools.chain(
        lines or (),
        (line for one in errors for line in wording.explain(one)),
        (line for one in unknown for line in wording.unknown_keys(one)),
    )
    found = list(itertools.islice(dict.fromkeys(itertools.islice(lines, 2 * MAX_PROBLEMS)), MAX_PROBLEMS + 1))
    if len(found) > MAX_PROBLEMS:
        found[MAX_PROBLEMS:] = ["and more"]
    found = found or wording.last_resort() or ([] if error is None else from_msgspec(error, arguments))
    return [shorten(line, MAX_LINE) for line in found]


def as_json(arguments: Any) -> Any:
    """Return the arguments of a Python caller as JSON, or the reason they cannot be."""
    try:
        plain = dump(arguments)
    except ToolValidationError as error:
        raise ArgumentsInvalid([f"arguments: not JSON: {error}"]) from None
    return plain


class PartRefused(ValueError):
    """A part of the arguments that its own type refuses; `problems` start with the path in that part."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


def from_msgspec(error: Exception, arguments: Any) -> list[str]:
    """msgspec's one error, "Expected `int`, got `float` - at `$.a[0]`", in our words."""
    if " - at `key` in " in str(error):
        return ["arguments: every key must be text"]
    part = error if isinstance(error, PartRefused) else error.__cause__
    if isinstance(part, PartRefused):  # its text may look like a path
        here = str(error).removeprefix(str(part)).removeprefix(" - at `$").rstrip("`").removeprefix(".")
        return [_put_below(here, line) for line in part.problems]
    text, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").removeprefix(".")
    expected, of_wrong_type, _ = text.partition(", got `")
    if of_wrong_type and "..." not in place:
        path = [int(index) if index else key for index, key in re.findall(r"\[(\d+)\]|([^.\[\]]+)", place)]
        text = f"{expected}, got {show(lookup(arguments, path) if path else arguments)}"
    return [f"{place or 'arguments'}: {(text[:1].lower() + text[1:]).replace('`', '')}"]


def tell_unknown_keys(keys: list[str], known: list[str]) -> list[str]:
    """Return the lines that refuse keys of arguments."""
    return list(_Wording(lambda error: KeyRules([]), None).unknown_keys(UnknownKeys((), keys, known)))


# --- wording -------------------------------------------------------------------------------------------


class _Wording:
    """Words for the validator's errors about one value. No line says of a known key that it is unknown."""

    def __init__(self, known: KnownKeys, value: Any) -> None:
        self._known = known
        self._value = value
        self._told: set[tuple[str | int, ...]] = set()
        self._ill_formed: set[tuple[str | int, ...]] = set()  # texts that a pattern refuses
        self._unexplained: list[Path] = []

    def explain(self, error: jsonschema_rs.ValidationError) -> Iterator[str]:
        kind: Any = error.kind
        path, keyword = error.instance_path, kind.name
        if keyword in ("additionalProperties", "unevaluatedProperties"):
            yield from self._refused_keys(error, kind.unexpected)
        elif keyword == "falseSchema" and _is_rest(error.evaluation_path):
            # `additionalProperties: false` alone; the validator gives the value of the key but not its name
            value = lookup(self._value, path)
            yield from self._refused_keys(error, list(value) if isinstance(value, Mapping) else [])
        elif keyword == "required":
            yield f"{show_path([*path, kind.property])}: missing; it is required"
        elif keyword in ("anyOf", "oneOf") and (branches := getattr(kind, "context", None)):
            yield from self._explain_branches(error, branches)
        elif keyword == "format" and tuple(path) in self._ill_formed:
            return  # its pattern says so in narrower words
        else:
            if keyword == "pattern":
                self._ill_formed.add(tuple(path))
            yield f"{show_path(path) or 'arguments'}: {_wording(error)}"

    def _refused_keys(self, error: jsonschema_rs.ValidationError, keys: list[str]) -> Iterator[str]:
        """Report refused keys. A key that fails by its value, or in an alternative, is unevaluated too; its own error
        covers it.
        """
        known, of_others = self._known(error)
        path = tuple(error.instance_path)
        self._unexplained += [(*path, key) for key in keys if key in known]
        others = [key for key in keys if key not in known]
        if of_others is None:
            yield from self.unknown_keys(UnknownKeys(path, others, known))
            return
        for key in others[:MAX_PROBLEMS]:
            yield from (below([*path, key], line) for line in of_others(lookup(self._value, [*path, key])))

    def unknown_keys(self, found: UnknownKeys) -> Iterator[str]:
        path, known = found.path, found.known
        keys = [key for key in found.keys if (*path, key) not in self._told]
        self._told.update((*path, key) for key in keys)
        names = [show_key(one) for one in known[:MAX_PROBLEMS]] + ["…"] * (len(known) > MAX_PROBLEMS)
        listed = f"known: {', '.join(names)}" if names else "none is expected here"
        for key in keys[: MAX_PROBLEMS // 2]:
            yield f"{show_path([*path, key])}: unknown key; {listed}"
        if len(keys) > MAX_PROBLEMS // 2:
            rest = len(keys) - MAX_PROBLEMS // 2
            yield f"{show_path(path) or 'arguments'}: and {rest} more unknown keys"

    def last_resort(self) -> list[str]:
        """Report keys that are declared and refused all the same: a schema that contradicts itself."""
        return [
            f"{show_path(path)}: the schema refuses this key here"
            for path in self._unexplained[:MAX_PROBLEMS]
        ]

    def _explain_branches(
        self, error: jsonschema_rs.ValidationError, branches: list[list[jsonschema_rs.ValidationError]]
    ) -> Iterator[str]:
        """Report the alternative whose shape the value has; otherwise list the possible shapes."""
        path, got = error.instance_path, show(error.instance)
        here = show_path(path) or "arguments"
        if fitting := sum(not branch for branch in branches):  # an alternative without errors fits
            yield f"{here}: fits {fitting} of {len(branches)} alternatives, must fit exactly one; got {got}"
            return
        tags = tag_paths(branches, path)
        near = [branch for branch in branches if not any(is_of_other_kind(one, path, tags) for one in branch)]
        if len(near) > 1:  # a list of options tells the alternatives apart if nothing else does
            near = [branch for branch in near if not any(tag_options(one, path) for one in branch)] or near
        if len(near) == 1:
            for one in near[0]:
                yield from self.explain(one)
            return
        if near:
            yield from self._none_of_several(here, len(branches), near)
            return
        wrong = [one for branch in branches for one in branch if is_of_other_kind(one, path, tags)]
        yield _other_kinds(error, wrong, path)

    def _none_of_several(
        self, here: str, alternatives: int, near: list[list[jsonschema_rs.ValidationError]]
    ) -> list[str]:
        """Report what the alternatives of the value's shape have against it: what all of them say, or each its own."""
        told = [list(dict.fromkeys(self._aside(branch))) for branch in near]
        shared = [line for line in told[0] if all(line in lines for lines in told)]
        if shared:
            return shared
        reasons = " / ".join(dict.fromkeys("; ".join(lines[:3]) for lines in told[:3]))
        return [f"{here}: fits none of {alternatives} alternatives: {reasons}"]

    def _aside(self, branch: list[jsonschema_rs.ValidationError]) -> Iterator[str]:
        """Report an alternative that may not be the one that was meant."""
        aside = _Wording(self._known, self._value)
        return (line for one in branch for line in aside.explain(one))


def _is_rest(evaluation_path: Path) -> bool:
    """Tell if the path ends at the keyword, not at a property of that name."""
    return evaluation_path[-1:] == ["additionalProperties"] and evaluation_path[-2:-1] not in [
        [one] for one in ("properties", "patternProperties", "$defs")
    ]


def below(path: Path, line: str) -> str:
    """Return a problem of a part as a problem of the whole, with the longer path."""
    return _put_below(show_path(path), line)


def _put_below(here: str, line: str) -> str:
    if not here:
        return line
    if line.startswith("arguments: "):
        return here + line.removeprefix("arguments")
    return here + ("" if line.startswith("[") else ".") + line


def _wording(error: jsonschema_rs.ValidationError) -> str:
    kind: Any = error.kind
    keyword = kind.name
    got = f", got {show(error.instance)}"
    if keyword == "type":
        return f"expected {_either(_NAMES.get(name, name) for name in sorted(kind.types))}{got}"
    if keyword == "enum":
        options = [show(option) for option in kind.options[:MAX_PROBLEMS]]
        return f"expected one of {', '.join(options)}{', …' if len(kind.options) > MAX_PROBLEMS else ''}{got}"
    if keyword == "const":
        return f"expected {show(kind.expected_value)}{got}"
    if keyword in _LIMITS:
        return f"expected {_LIMITS[keyword].format(kind.limit)}{got}"
    if keyword == "multipleOf":
        return f"expected a multiple of {kind.multiple_of}{got}"
    if keyword == "pattern":
        if hasattr(kind, "error"):
            return f"takes too many steps to match; give a shorter text{got}"
        pattern = (
            kind.pattern if hasattr(kind, "pattern") else kind.message
        )  # the second is of one that counts
        return f"expected {WORDS.get(pattern) or f'text matching {shorten(pattern, 200)}'}{got}"
    if keyword == "format":
        return f"expected {WORDS.get(kind.format) or f'a {kind.format}'}{got}"
    if keyword == "propertyNames":
        return f"key {show(kind.error.instance)}: {_wording(kind.error).partition(', got ')[0]}"
    if keyword == "falseSchema":
        return f"the schema allows nothing here{got}"
    if keyword == "contains":
        return (
            f"expected {_CONTAINED[str(error.evaluation_path[-1])]} of the kind that the schema asks for{got}"
        )
    if keyword == "uniqueItems":
        return "expected no item twice"
    return shorten(error.message, 200)


def known_keys(*nodes: Any) -> list[str]:
    """Return the keys that schemas declare or require, patterns last."""
    names: dict[str, None] = {}
    for node in nodes:
        declared = node.get("properties", {})
        names |= dict.fromkeys(key for key, child in declared.items() if child is not False)
        names |= dict.fromkeys(key for key in node.get("required", ()) if key not in declared)
    patterns = [pattern for node in nodes for pattern in node.get("patternProperties", ())]
    return [*names, *dict.fromkeys(f"keys matching {pattern}" for pattern in patterns)]


def types_of(node: Any) -> set[str]:
    """Return the types a schema may accept, by its own `type`."""
    everything = {"object", "array", "string", "number", "integer", "boolean", "null"}
    if not isinstance(node, dict):
        return everything if node else set()
    said = node.get("type", everything)
    return {said} if isinstance(said, str) else set(said)


def _either(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names)) or "something else"


def _other_kinds(
    error: jsonschema_rs.ValidationError, wrong: list[jsonschema_rs.ValidationError], path: list[Any]
) -> str:
    """Report a value of no alternative's shape: the options of the tag that tells them apart, or the types."""
    if tagging := by_path([one for one in wrong if one.kind.name != "type"]):
        tagged = max(tagging, key=len)  # the tag on which most alternatives differ
        known = [*dict.fromkeys(show(option) for one in tagged for option in tag_options(one, path))]
        known[MAX_PROBLEMS:] = ["…"] if len(known) > MAX_PROBLEMS else []
        here = show_path(tagged[0].instance_path)
        return f"{here}: expected one of {', '.join(known)}, got {show(tagged[0].instance)}"
    here = show_path(path) or "arguments"
    names = {name for one in wrong for name in getattr(one.kind, "types", ())}
    expected = _either(sorted(_NAMES.get(name, name) for name in names))
    return (
        f"{here}: expected {expected}, got {show(error.instance)}" if names else f"{here}: {_wording(error)}"
    )
