"""Damage to documents, drawn by lot: bytes that are flipped, cut and repeated, and JSON whose values are exchanged."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any, Final

TOKENS: Final = (
    b"null", b"true", b"{}", b"[]", b'""', b"0", b"-0", b"-1", b"1e309", b"1.0", b"NaN", b"Infinity", b"\\ud800",
    b"\\u0000", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b"\n", b"\r\n", b"\t", b",", b":", b'"', b"{", b"}", b"[", b"]",
    b"99999999999999999999", b"9" * 400, b"[" * 200, b'{"a":' * 120, b"\xf0\x9f\x98\x80", b"\xe2\x80\xae", b"'''", b"#",
    b"=", b"$from", b"$literal", b"__class__", b"../..", b"//", b"%", b"A" * 3000,
)  # fmt: skip
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 1.5, 2**63, -(2**70), 1e300, "", "x", "\u0000", "\u202e", "a" * 500, "../../etc",
    [], [[]], {}, {"": {}}, [None], {"$from": "a"}, {"$literal": 1}, {"type": "object"}, "0", "done", "^(a+)+$",
    ["a", 1],
)  # fmt: skip


def damaged(source: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Return a document with one to four damages: as JSON now and then, else as bytes."""
    if chance.random() < 0.5:
        shaped = exchanged(source, chance)
        if shaped is not None:
            if chance.random() < 0.7:
                return shaped
            source = shaped
    data = bytearray(source)
    for _ in range(chance.randint(1, 4)):
        _hurt(data, chance, others)
    return bytes(data)


def _hurt(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    length = min(len(data) - at, int(chance.expovariate(0.1)) + 1)
    match chance.randrange(8):
        case 0 if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            del data[at : at + length]
        case 2:
            data[at:at] = data[at : at + length]
        case 3:
            data[at:at] = chance.choice(TOKENS)
        case 4:
            data[at : at + length] = chance.choice(TOKENS)
        case 5:
            del data[at:]
        case 6 if others:
            other = chance.choice(others)
            start = chance.randrange(len(other) + 1)
            data[at : at + length] = other[start : start + int(chance.expovariate(0.02))]
        case _:
            data[at:at] = chance.randbytes(chance.randint(1, 4))


def exchanged(source: bytes, chance: random.Random) -> bytes | None:
    """Return JSON, or lines of it, with a few values exchanged; None for what is no JSON."""
    lines = source.split(b"\n")
    try:
        documents = [json.loads(source)]
        lines = []
    except ValueError:
        try:
            number = chance.randrange(len(lines))
            documents = [json.loads(lines[number])]
        except ValueError:
            return None
    document = copy.deepcopy(documents[0])
    for _ in range(chance.randint(1, 3)):
        document = _exchange(document, chance)
    text = json.dumps(document, ensure_ascii=chance.random() < 0.5).encode(errors="surrogatepass")
    if not lines:
        return text
    return b"\n".join([*lines[:number], text, *lines[number + 1 :]])


def _exchange(document: Any, chance: random.Random) -> Any:
    """Change one node somewhere in a document."""
    node, parents = document, []
    while isinstance(node, dict | list) and node and (not parents or chance.random() < 0.75):
        key = chance.choice([*node] if isinstance(node, dict) else range(len(node)))
        parents.append((node, key))
        node = node[key]
    if not parents:
        return chance.choice(VALUES)
    holder, key = parents[-1]
    match chance.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(("x", "", "type", "name", f"{key} ", str(key).upper()))] = holder.pop(key)
        case 2 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(node))
        case 3:
            for _ in range(chance.choice((1, 3, 110))):
                node = [node] if chance.random() < 0.5 else {"a": node}
            holder[key] = node
        case _:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
    return document
