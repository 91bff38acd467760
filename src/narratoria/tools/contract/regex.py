"""Regular expressions from manifests and stories, matched in linear time.

A backtracking engine can take minutes over thirty characters, and it holds the event loop while it does. These
expressions run in the engine that checks JSON Schema's `pattern`, which never backtracks, so a manifest has one
dialect. It has no look-around and no back-references.

Its time still grows with the size of the compiled expression (`.{1,1000}` is a thousand states), so the two are
bounded together: the larger an expression, the shorter the text it is tried on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from narratoria.errors import NarratoriaError, ToolValidationError

MAX_SIZE: Final = 1 << 20
"""Cap on the bytes of a compiled expression."""
MAX_WORK: Final = 1 << 29
"""Cap on compiled bytes times characters: 0.1 to 0.5 s for the worst expressions that were found."""
MAX_TEXT: Final = 1 << 20
_SMALLEST: Final = 1 << 9
_KEPT: Final = 512

_HINTS: Final = (
    (
        ("(?=", "(?!", "(?<=", "(?<!"),
        "it has no look-around; say {$not: {$matches: …}}, or use two conditions",
    ),
    (("\\Z",), "the end of the text is `$`"),
    (("(?P=", "\\1", "\\2"), "it has no back-references"),
)


class TextTooLong(NarratoriaError):
    """A text is longer than the limit for an expression of that size."""


class Regex:
    """One compiled expression. `longest` is the longest text it is tried on."""

    __slots__ = ("_validator", "longest", "pattern")

    def __init__(self, pattern: str, validator: jsonschema_rs.Draft202012Validator, size: int) -> None:
        self.pattern = pattern
        self.longest = min(MAX_TEXT, MAX_WORK // size)
        self._validator = validator

    def search(self, text: str) -> bool:
        """Tell if the expression is found anywhere in the text."""
        if len(text) > self.longest:
            raise TextTooLong(
                f"the expression {self.pattern[:100]!r} is tried on at most {self.longest:,} characters, and the text "
                f"has {len(text):,}; use $contains, or an expression with smaller repeat counts"
            )
        try:
            return self._validator.is_valid(text)
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say and UTF-8 cannot
            return self._validator.is_valid(
                text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )


def compile_regex(pattern: Any) -> Regex:
    """Compile an expression; refuse an invalid one with the reason."""
    if not isinstance(pattern, str):
        raise ToolValidationError(f"{pattern!r} is not a regular expression: it is no text")
    return _compile(pattern)


@lru_cache(_KEPT)
def _compile(pattern: str) -> Regex:
    size = _SMALLEST
    while size <= MAX_SIZE:  # the engine tells no size, only whether a limit was enough
        options = jsonschema_rs.RegexOptions(size_limit=size)
        try:
            validator = jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except (jsonschema_rs.ValidationError, ValueError):  # a lone surrogate is a ValueError
            size *= 2
        else:
            return Regex(pattern, validator, size)
    raise ToolValidationError(f"{pattern[:200]!r} is not a regular expression: {_reason(pattern)}")


def _reason(pattern: str) -> str:
    for signs, hint in _HINTS:
        if any(sign in pattern for sign in signs):
            return hint
    return (
        f"it does not compile as the `pattern` of a JSON Schema does, or takes more than {MAX_SIZE:,} bytes; "
        "look for an unclosed bracket, an unescaped `{`, or large repeat counts"
    )
