"""Faults in a line of a tool's output, in the words of the protocol, with the likely fix."""

from __future__ import annotations

import difflib
import re
from typing import Final

import msgspec

from narratoria.events import TOOL_EVENT_TYPES
from narratoria.strict_json import DuplicateKey
from narratoria.tools.schema.excerpts import excerpt
from narratoria.unicode_text import escaped

EXCERPT_BYTES: Final = 160
_BOM: Final = b"\xef\xbb\xbf"
_TO_STDERR: Final = (
    "stdout carries only events, one JSON object a line; send everything else to stderr "
    "(Python: print(..., file=sys.stderr); shell: >&2)"
)
_FIELDS: Final = "see docs/protocol.md for the fields of each event"
_ALLOWED: Final = {"level": "`level` is one of debug, info, warn, error"}
_WRITTEN: Final = {
    "bool": "true or false, without quotes",
    "str": "a string, in quotes",
    "object": "an object, { … }",
    "int": "a number",
    "array": "an array, [ … ]",
}
_decode_any: Final = msgspec.json.Decoder().decode
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def printable(raw: bytes, limit: int = EXCERPT_BYTES) -> str:
    """Return bytes as one line that is safe on a terminal; unprintable bytes are escaped."""
    text = raw[:limit].decode("utf-8", "backslashreplace")
    return f"`{escaped(text)}`" + (f"… ({len(raw):,} bytes)" if len(raw) > limit else "")


# --- what went wrong -----------------------------------------------------------------------------------


def diagnose(line: bytes, error: BaseException, depth: int) -> tuple[str, str]:
    """Return a fault in the words of the protocol, and the likely fix."""
    if line.startswith(_BOM):
        return "starts with a byte order mark", "write UTF-8 without a BOM (Python: encoding='utf-8')"
    if isinstance(error, RecursionError):
        return (
            f"is nested too deeply (more than {depth} levels)",
            "flatten the data, or write it to a file and announce an `asset`",
        )
    if isinstance(error, DuplicateKey):
        return str(error), "write each key once"
    if isinstance(error, UnicodeDecodeError):
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "is UTF-16, not UTF-8", "encode as UTF-8"
        return f"is not UTF-8 at byte {error.start}", "encode stdout as UTF-8; put binary data in a file"
    if isinstance(error, msgspec.ValidationError):
        return _diagnose_event(line, excerpt(error))
    return _diagnose_json(line.strip(), excerpt(error))


def _diagnose_json(line: bytes, reason: str) -> tuple[str, str]:
    if line.startswith((b"{\0", b"\0{")):
        return "is UTF-16, not UTF-8", "encode as UTF-8"
    if b"\0" in line[:EXCERPT_BYTES]:
        return "is binary data, not JSON", "put binary data in a file and announce it with an `asset` event"
    if not line.startswith(b"{"):
        return "is not a JSON object", _TO_STDERR
    if any(word in line for word in (b"NaN", b"Infinity")):
        return "is not JSON: NaN and Infinity do not exist in it", "send null or a string instead"
    if line.startswith((b"{'", b"{ '")):
        return "is not JSON: keys need double quotes", "print json.dumps(event), not the dict itself"
    if line == b"{" or line.endswith((b",", b"[")):
        return "is not a complete JSON object", "write each event on one line, without indentation"
    if found := _LONE_SURROGATE.search(line):
        half = found[0].decode()
        return (
            f"is not Unicode text: {half} is half of a surrogate pair",
            "replace it, or write both halves; text cut in the middle of an emoji has one",
        )
    if "trailing" in reason:
        return "has more than one JSON value", "write one object a line, each ended by a newline"
    return f"is not valid JSON ({reason})", "encode events with a JSON library, one object a line"


def _diagnose_event(line: bytes, reason: str) -> tuple[str, str]:
    if reason.startswith("Expected `object`, got") and " - at " not in reason:
        return "is JSON, but not an object", _TO_STDERR
    if "`type`" in reason or reason.endswith("at `$.type`"):
        known = ", ".join(TOOL_EVENT_TYPES)
        given = _field(line, "type")
        near = difflib.get_close_matches(str(given), TOOL_EVENT_TYPES, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        what = "has no `type`" if given is None else f"has the unknown type {str(given)[:60]!r}"
        return what, f"{hint}`type` is one of {known}"
    if "`version`" in reason or reason.endswith("at `$.version`"):
        return f'must have `"version": "0"` ({reason})', 'add "version": "0", a string, to every event'
    return _diagnose_field(reason)


def _diagnose_field(reason: str) -> tuple[str, str]:
    what, _, where = reason.partition(" - at ")
    place = where.strip("`").removeprefix("$.") or "the event"
    key = place.partition("[")[0].partition(".")[0]
    message = f"has a wrong or missing field: {reason}"
    if "out of range" in reason:
        return (
            f"has a number out of range in `{key}`: {reason}",
            "integers have at most 4,300 digits, and floats are finite; send larger ones as strings",
        )
    if key in _ALLOWED:
        return message, _ALLOWED[key]
    if wanted := re.search(r"Expected `(\w+)", what):
        kind = _WRITTEN.get(wanted[1], f"of type {wanted[1]}")
        return message, f"`{key}` must be {kind}"
    if missing := re.search(r"missing required field `(\w+)`", what):
        return message, f"add `{missing[1]}`; {_FIELDS}"
    return message, _FIELDS


def _field(line: bytes, name: str) -> object:
    try:
        found = _decode_any(line)
    except (ValueError, RecursionError):  # also what is not UTF-8
        return None
    return found.get(name) if isinstance(found, dict) else None


def is_cut_short(line: bytes) -> bool:
    """Tell if a line without newline is the beginning of an object."""
    try:
        _decode_any(line)
    except msgspec.DecodeError as error:
        return line.lstrip().startswith(b"{") and "truncated" in str(error)
    except (ValueError, RecursionError):  # also what is not UTF-8, which is said of it
        return False
    return False
