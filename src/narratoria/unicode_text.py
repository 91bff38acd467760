"""Text that JSON and a journal can carry.

A Python string may hold half of a surrogate pair, as `os.fsdecode` makes of a strange file name. UTF-8 has no form for
it. Text for people is made legible; names and keys are refused.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

_BREAKS: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))
_JOINERS: Final = "\u200c\u200d"  # letters of Persian and emoji are joined by them


def legible(text: str) -> str:
    """Return the text, as a plain `str`, with U+FFFD in place of every lone surrogate."""
    if type(text) is not str:
        text = str.__str__(text)
    if text.isascii() or encodes(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def legible_data(value: Any) -> Any:
    """Return JSON data with each of its texts, keys included, made legible."""
    if isinstance(value, str):
        return legible(value)
    if isinstance(value, dict):
        return {legible_data(key): legible_data(one) for key, one in value.items()}
    return [legible_data(one) for one in value] if isinstance(value, list | tuple) else value


def encodes(text: str) -> bool:
    """Tell if UTF-8 can carry a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(value: object, what: str) -> str:
    """Return the value if it is text that UTF-8 can carry; else raise TypeError or ValueError that names `what`."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, got {type(value).__name__}")
    if not value.isascii() and not encodes(value):
        raise ValueError(
            f"{what}: {value!a} has half of a surrogate pair; decode bytes with errors='replace'"
        )
    return value if type(value) is str else str.__str__(value)


def as_one_line(text: str) -> str:
    """Return text as one line that reads in its own order, as a title on a card or in the name of a file. Controls and
    breaks become blanks; signs that nobody sees, such as those that turn the direction of writing (U+202E), go.
    """
    text = legible(text)
    if not text.isprintable():
        text = "".join(_in_a_line(letter) for letter in text)
    return " ".join(text.split())


def _in_a_line(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Cf":
        return letter if letter in _JOINERS else ""
    return " " if category in _BREAKS else letter


def escaped(text: str, keep: str = "") -> str:
    """Return text with control characters escaped, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )
