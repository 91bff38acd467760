"""The YAML at the top of a SKILL.md: block style alone, every value a text, as the reference validator reads it.

Flow style (`[a, b]`), anchors, tags and a key twice are refused: a bomb of aliases cannot be written without them, and
`yes` is a word here, no truth value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

FENCE: Final = "---"
MOST: Final = 64 * 1024
"""Characters of the YAML."""


class FrontmatterInvalid(ValueError):
    """The top of a SKILL.md cannot be read; the message says where and what to do."""


def read_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Return the keys at the top of a SKILL.md and the body below them."""
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
    return _mapping(front), "\n".join(lines[end + 1 :]).strip()


def _mapping(front: str) -> dict[str, Any]:
    import yaml  # type: ignore[import-untyped]  # 15 ms that a command without skills need not pay

    try:
        _refuse(yaml.scan(front, Loader=yaml.SafeLoader), yaml)
        root = yaml.compose(front, Loader=yaml.SafeLoader)
        value = None if root is None else _value(root, yaml)
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


def _value(node: Any, yaml: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = _value(key, yaml)
            line = key.start_mark.line + 2
            if not isinstance(name, str):
                raise FrontmatterInvalid(f"line {line}: a key is a text")
            if name in found:
                raise FrontmatterInvalid(f"line {line}: the key {name!r} is there twice; keep one of the two")
            found[name] = _value(value, yaml)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(one, yaml) for one in node.value]
    return node.value
