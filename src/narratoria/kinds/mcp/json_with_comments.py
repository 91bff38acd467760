"""JSON with comments, as editors write their settings: `//`, `/* */` and a comma behind the last member."""

from __future__ import annotations

import re
from typing import Any, Final

from narratoria import bounds
from narratoria.strict_json import read

# Each takes time in proportion to the text, closed or not.
_TEXT: Final = r'"(?:[^"\\\n]|\\.)*"?'
_COMMENT: Final = re.compile(rf"{_TEXT}|//[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_LAST_COMMA: Final = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])", re.DOTALL)


def decode_with_comments(content: bytes) -> Any:
    """Return the value of JSON that may have comments. Raises `DocumentFault`; lines in it are those of the content."""
    text = bounds.text_of(content)
    try:
        return read(content)
    except bounds.DocumentFault:
        plain = _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, text))
        if plain == text:
            raise
    return read(plain.encode())


def _blank(piece: re.Match[str]) -> str:
    """Keep a text; put spaces in place of anything else, so that places stay what they are."""
    found = piece[0]
    return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)
