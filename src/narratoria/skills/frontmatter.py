"""The YAML at the top of a SKILL.md: block style alone, every value a text, as the reference validator reads it.

Flow style (`[a, b]`), anchors, tags and a key twice are refused: a bomb of aliases cannot be written without them, and
`yes` is a word here, no truth value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from narratoria.unicode_text import encodes

FENCE: Final = "---"
MOST: Final = 64 * 1024
"""Characters of the YAML."""
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")


class FrontmatterInvalid(ValueError):
    """The top of a SKILL.md cannot be read; the message says where and what to do."""


def read_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Return the keys at the top of a SKILL.md and the body below them."""
    front, body = _parted(text)
    return _mapping(front), body


def frontmatter_as_json(text: str) -> dict[str, Any]:
    """Return the keys at the top of a SKILL.md with the types of YAML 1.2, as other readers see them: `true` and `1.0`
    without quotes are no texts.
    """
    return _mapping(_parted(text)[0], typed=True)


def _parted(text: str) -> tuple[str, str]:
    if text.startswith("\ufeff"):
        raise FrontmatterInvalid("begins with a byte order mark; save it as UTF-8 without one")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise FrontmatterInvalid("must begin with a line ---, then name and description, then a line ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise FrontmatterInvalid("the YAML at its top has no end; close it with a line ---")
    front = "\n".join(lines[1:end])
    if len(front) > MOST:
        raise FrontmatterInvalid(f"the YAML at its top has {len(front):,} characters, more than {MOST:,}")
    return front, "\n".join(lines[end + 1 :]).strip()


def _mapping(front: str, *, typed: bool = False) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # 15 ms that a command without skills need not pay

    try:
        _refuse(yaml.scan(front, Loader=yaml.SafeLoader), yaml)
        root = yaml.compose(front, Loader=yaml.SafeLoader)
        value = None if root is None else _value(root, yaml, typed)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"line {mark.line + 2}: " if mark is not None else ""
        advice = "; put the value in quotes" if "mapping values" in (error.problem or "") else ""
        raise FrontmatterInvalid(f"{at}not YAML: {error.problem or error}{advice}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise FrontmatterInvalid(f"not YAML: {error}") from None
    if not isinstance(value, dict):
        raise FrontmatterInvalid("the YAML at its top has no keys; write name: … and description: …")
    return value


def _refuse(tokens: Iterable[Any], yaml: Any) -> None:
    """Refuse what the format does not have."""
    refused = {
        yaml.FlowSequenceStartToken: "a list in [ ]; write one item a line, each after a hyphen, or a plain text",
        yaml.FlowMappingStartToken: "an object in { }; write one key a line, indented",
        yaml.AnchorToken: "an anchor (&); write the value out",
        yaml.AliasToken: "an alias (*); write the value out, or put it in quotes",
        yaml.TagToken: "a tag (!); leave it out, or put the value in quotes",
    }
    for token in tokens:
        if type(token) in refused:
            line = token.start_mark.line + 2
            raise FrontmatterInvalid(f"line {line}: {refused[type(token)]}")


def _value(node: Any, yaml: Any, typed: bool = False) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = _value(key, yaml)
            line = key.start_mark.line + 2
            if not isinstance(name, str):
                raise FrontmatterInvalid(f"line {line}: a key is a text")
            if name in found:
                raise FrontmatterInvalid(f"line {line}: the key {name!r} is there twice; keep one of the two")
            found[name] = _value(value, yaml, typed)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(one, yaml, typed) for one in node.value]
    if not encodes(node.value):
        line = node.start_mark.line + 2
        raise FrontmatterInvalid(f"line {line}: half a character, such as \\uD800 alone; write whole ones")
    return _plain(node.value) if typed and node.style is None else node.value


def _plain(text: str) -> Any:
    """Return a value without quotes, by the core schema of YAML 1.2."""
    # YAML 1.2.2 §10.3.2
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
