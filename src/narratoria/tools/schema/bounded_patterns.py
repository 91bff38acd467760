"""Validators whose patterns cannot hold the event loop.

The time of a `pattern` grows with its compiled size and with the text, and the validator runs to its end whatever
the call's timeout says. So the work of one match is bounded, compiled bytes times characters, and so is the time of
all matches of one check. Arguments that surely stay below go straight to the validator. For the others the same
schema is checked with a `pattern` that counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import jsonschema_rs

from narratoria.errors import ArgumentsInvalid
from narratoria.tools.schema.text_formats import WORDS

MAX_WORK: Final = 1 << 29
"""Cap on compiled bytes times characters in one match: 0.1 to 0.5 s for the worst expressions that were found."""
MAX_TIME: Final = 500_000_000
"""Cap on the nanoseconds that all matches of one check take, of this thread's own time."""
BACKTRACKS: Final = 200_000
"""Cap on the steps back of an expression with look-around on one text: about 0.05 s."""
_AT_ONCE: Final = 1 << 26  # below, nothing needs to be counted
_SHORT: Final = 128  # characters in all, on which an expression that steps back needs no count
_SMALLEST: Final = 1 << 9
_LARGEST: Final = 1 << 24  # the engine itself refuses what is larger
_MAX_REGEX: Final = 1 << 18  # compiled bytes of a text that has to be an expression
_MAX_REGEX_TEXT: Final = 10_000
_SMALL: Final = (
    1 << 10
)  # about ten states, so that all their sets fit the engine's cache: then size is no matter
_LEAST: Final = (
    16  # the cost of these, and of the patterns of `text_formats`, which never have two ways to go on
)

# A class of characters takes as many bytes as it has ranges, up to 80,000, but little more time than one character.
_CLASSES: Final = re.compile(r"\\[pP](?:\{[^}]*\}|.)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\.", re.DOTALL)
_CLASS_TIME: Final = 4

Build: TypeAlias = Callable[..., jsonschema_rs.Draft202012Validator]


class Cost(NamedTuple):
    """The cost of an expression for each character.

    One with look-around or a back-reference steps back, and if it is not anchored, it is tried anew from each
    character: `squared`.
    """

    bytes: int
    steps_back: bool = False
    squared: bool = False

    def work(self, length: int) -> int:
        return self.bytes * max(length, length * length // 16 if self.squared else 0)

    def is_light(self, length: int) -> bool:
        return not self.steps_back or length <= _SHORT

    def longest(self, work: int) -> int:
        return int((16 * work / self.bytes) ** 0.5) if self.squared else work // max(self.bytes, 1)


@lru_cache(1024)
def cost_of(pattern: str) -> Cost:
    """Measure an expression by compiling it. Nothing for what is none: it stands in a value, such as a `const`."""
    if pattern in WORDS:
        return Cost(_LEAST)
    plain = jsonschema_rs.RegexOptions
    size = _compiled_size(pattern, plain)
    steps_back = size is None
    if size is None:
        size = _compiled_size(pattern, jsonschema_rs.FancyRegexOptions)
    if size is None:
        return Cost(0)
    slim = _compiled_size(
        _CLASSES.sub(_one_character, pattern), jsonschema_rs.FancyRegexOptions if steps_back else plain
    )
    if slim is not None and slim <= _SMALL and not steps_back:
        return Cost(_LEAST)
    anchored = pattern.startswith("^") and "|" not in pattern
    cost = min(size, _CLASS_TIME * slim) if slim else size
    return Cost(cost, steps_back, steps_back and not anchored)


def _one_character(found: re.Match[str]) -> str:
    text = found[0]
    return "a" if text[0] in "[." or text[:2] in ("\\p", "\\P", "\\w", "\\W", "\\s", "\\S") else text


def _compiled_size(pattern: str, options: Callable[..., Any]) -> int | None:
    size = _SMALLEST
    while size <= _LARGEST:  # the engine tells no size, only whether a limit was enough
        try:
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options(size_limit=size))
        except (jsonschema_rs.ValidationError, ValueError):
            size *= 2
        else:
            return size
    return None


def with_bounded_patterns(schema: Any, build: Build) -> Validator:
    """Build a validator of the schema; one with patterns is bounded."""
    patterns, key_patterns, regexes = _mentioned(schema)
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    if not (patterns or key_patterns or regexes):
        return build()
    return BoundedValidator(
        lambda **more: build(pattern_options=options, **more), patterns, key_patterns, regexes
    )


def _mentioned(schema: Any) -> tuple[list[str], list[str], bool]:
    """Every `pattern`, every key of a `patternProperties`, and whether a text may have to be an expression."""
    patterns: list[str] = []
    key_patterns: list[str] = []
    regexes = False
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict) and id(node) not in seen:
            seen.add(id(node))
            waiting += node.values()
            if isinstance(node.get("pattern"), str):
                patterns.append(node["pattern"])
            if isinstance(node.get("patternProperties"), dict):
                key_patterns += node["patternProperties"]
            regexes = regexes or node.get("format") == "regex"
    return patterns, key_patterns, regexes


class BoundedValidator:
    """A validator of a schema with patterns. Raises `ArgumentsInvalid` for texts too long for them."""

    def __init__(self, build: Build, patterns: list[str], key_patterns: list[str], regexes: bool) -> None:
        self._build = build
        self._native = build()
        self._costs = [cost_of(pattern) for pattern in (*patterns, *key_patterns)]
        self._key_patterns = [pattern for pattern in key_patterns if cost_of(pattern).bytes]
        self._regexes = regexes

    @cached_property
    def _counting(self) -> tuple[_Work, jsonschema_rs.Draft202012Validator]:
        work = _Work()
        formats = {"regex": work.is_regex} if self._regexes else None
        return work, self._build(keywords={"pattern": work.keyword()}, formats=formats)

    def is_valid(self, value: Any) -> bool:
        if self._is_light(value):
            return self._native.is_valid(value)
        work, validator = self._counting
        with work:
            return validator.is_valid(value)

    def iter_errors(self, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        if self._is_light(value):
            return self._native.iter_errors(value)
        work, validator = self._counting
        with work:
            return validator.iter_errors(value)

    def _is_light(self, value: Any) -> bool:
        """Tell if no pattern can take long on the texts of the value; refuse keys on which one could."""
        length, keys = _lengths(value)
        if (
            not self._regexes
            and sum(cost.work(length) for cost in self._costs) <= _AT_ONCE
            and all(cost.is_light(length) for cost in self._costs)
        ):
            return True
        if self._key_patterns and keys:
            costs = {pattern: cost_of(pattern) for pattern in self._key_patterns}
            heavy = sum(cost.work(keys) for cost in costs.values()) > MAX_WORK
            counted = [pattern for pattern, cost in costs.items() if heavy or cost.steps_back]
            with (work := _Work()):  # the validator matches keys itself, so they are counted before
                for match in map(work.matcher, counted):
                    for key in _keys(value):
                        match(key)
        return False


Validator: TypeAlias = jsonschema_rs.Draft202012Validator | BoundedValidator


def _lengths(value: Any) -> tuple[int, int]:
    """Return the number of characters in a value, and of those in its keys."""
    texts = keys = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            texts += len(one)
        elif isinstance(one, dict):
            keys += sum(len(key) for key in one if isinstance(key, str))
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
    return texts + keys, keys


def _keys(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from (key for key in one if isinstance(key, str))
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one


class _Work:
    """The matches of one check. Leaving the block raises `ArgumentsInvalid` if they were too much."""

    def __init__(self) -> None:
        self._left = MAX_TIME
        self._refused: str | None = None

    def __enter__(self) -> None:
        self._left, self._refused = MAX_TIME, None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None and self._refused is not None:
            raise ArgumentsInvalid([f"arguments: {self._refused}"])

    def matcher(self, pattern: str) -> Callable[[str], bool]:
        """Return a function that tells if a text matches; it is false once there is no time left."""
        longest = cost_of(pattern).longest(MAX_WORK)
        matches = key_matcher(pattern)

        def match(text: str) -> bool:
            if len(text) > longest:
                self._refuse(
                    f"a text has {len(text):,} characters, too long to match {_short(pattern)}; "
                    f"give at most {longest:,}"
                )
            return self._timed(matches, text, _short(pattern))

        return match

    def is_regex(self, text: str) -> bool:
        """Tell if a text is an expression that a pattern could be."""
        return self._timed(_is_regex, text, "as regular expressions")

    def _timed(self, judge: Callable[[str], bool], text: str, what: str) -> bool:
        if self._refused is not None:
            return False
        began = time.thread_time_ns()
        found = judge(text)
        self._left -= time.thread_time_ns() - began
        if self._left < 0:
            self._refuse(f"the texts are too many or too long to match {what}; give fewer or shorter ones")
        return found

    def _refuse(self, reason: str) -> None:
        if self._refused is None:
            self._refused = reason

    def keyword(self) -> type[Any]:
        """Return the keyword `pattern`, counted."""
        work = self

        class Pattern:
            def __init__(self, parent: Any, value: Any, path: Any) -> None:
                self.pattern, self.match = value, work.matcher(value)

            def validate(self, instance: Any) -> None:
                if isinstance(instance, str) and not self.match(instance):
                    raise ValueError(self.pattern)

        return Pattern


def key_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells if a text matches, for keys that a bounded validator has let pass."""
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options).is_valid


def _is_regex(text: str) -> bool:
    if len(text) > _MAX_REGEX_TEXT:
        return False
    options = jsonschema_rs.FancyRegexOptions(size_limit=_MAX_REGEX)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=options)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 100 else pattern[:99] + "…"
