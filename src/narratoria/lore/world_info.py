"""Brings in what players of other clients own: world info and character cards, as JSON or in a PNG.

What cannot be carried over is named in `skipped`. A regular expression as a keyword runs in the matcher that takes
linear time; one that it cannot take is left out, since one bad pattern could hang a turn.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from narratoria import bounds, strict_json
from narratoria.errors import NarratoriaError
from narratoria.lore.entries import Logic, LoreEntry, LoreInvalid, expression

SUFFIXES: Final = (".json", ".png")
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_ENTRIES: Final = 20_000
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_LOGIC: Final[Mapping[int, Logic]] = {0: "any", 1: "not_all", 2: "not_any", 3: "all"}
_MACRO: Final = re.compile(r"\{\{(char|user)\}\}|<(char|user)>", re.IGNORECASE)
# World info belongs to no character: whoever it is played with is meant, and no name is known here.
_OF_NOBODY: Final = {"char": "the character", "user": "you"}
_CARD_TEXTS: Final = ("name", "nickname", "description", "personality", "scenario", "first_mes")
_ONLY_IN_CARDS: Final = ("first_mes", "mes_example", "personality", "scenario")
_DECORATOR: Final = re.compile(r"\A(?:\s*@@@?\w+[^\n]*(?:\n|\Z))+")


class ImportRejected(NarratoriaError):
    """A file is no world info and no character card; the message says what it looked like."""


@dataclass(frozen=True, slots=True)
class Character:
    name: str
    sheet: str  # description, personality and scenario, as paragraphs
    greeting: str = ""


@dataclass(slots=True)
class ImportedLore:
    name: str
    entries: list[LoreEntry] = field(default_factory=list)
    characters: list[Character] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # what was left behind, and why


def import_file(path: Path) -> ImportedLore:
    """Read a world-info file or a character card, whichever it is."""
    try:
        data = bounds.read_file(path, MAX_BYTES)
    except OSError as error:
        raise ImportRejected(f"{path}: cannot be read: {error.strerror or error}") from None
    except bounds.OutOfBounds as error:
        raise ImportRejected(f"{path}: {error}") from None
    return import_data(decode(data, str(path)), path.stem, str(path))


def decode(data: bytes, where: str) -> Any:
    """Read the document in a file: JSON, or a picture that carries it."""
    if data.startswith(_PNG):
        return _card_in_png(data, where)
    return _json(data, f"{where}: neither a PNG nor JSON")


def _json(text: bytes, what: str) -> Any:
    try:
        return strict_json.read(text)
    except (strict_json.NotJson, bounds.NotUtf8) as error:
        raise ImportRejected(f"{what}: line {error.line}: {str(error).removeprefix('not JSON: ')}") from None
    except bounds.DocumentFault as error:
        raise ImportRejected(error.at(what.partition(": neither")[0])) from None


def import_data(data: Any, name: str, where: str = "data") -> ImportedLore:
    """The same for a document that is already decoded."""
    if not isinstance(data, Mapping):
        raise ImportRejected(f"{where}: expected a JSON object, got {type(data).__name__}")
    spec, inner = data.get("spec"), data.get("data")
    if spec in ("chara_card_v2", "chara_card_v3") and isinstance(inner, Mapping):
        return _card(inner, name)
    if spec == "lorebook_v3" and isinstance(inner, Mapping):
        return _book(inner, _text(inner.get("name")) or name, _OF_NOBODY)
    if spec is None and isinstance(data.get("entries"), Mapping | list):
        return _book(data, _text(data.get("name")) or name, _OF_NOBODY)
    # V1: the fields stand at the root. Half of all JSON has a name and a description; a card says how somebody speaks.
    speaks = any(isinstance(data.get(key), str) for key in _ONLY_IN_CARDS)
    if spec is None and speaks and _text(data.get("name")):
        return _card(data, name)
    raise ImportRejected(f"{where}: no world info (no 'entries') and no character card (no known 'spec')")


# --- PNG -----------------------------------------------------------------------------------------------


def _card_in_png(data: bytes, where: str) -> Any:
    """V3 spec, Embedding Methods: base64 JSON in a tEXt chunk `ccv3`, which wins over V2's `chara`."""
    texts = dict(_text_chunks(data, where))
    for keyword in ("ccv3", "chara"):
        if keyword in texts:
            try:
                text = base64.b64decode(texts[keyword], validate=True)
            except ValueError as error:
                raise ImportRejected(f"{where}: the chunk {keyword!r} holds no card: {error}") from None
            return _json(text, f"{where}: the chunk {keyword!r} holds no card")
    raise ImportRejected(f"{where}: a picture without a character card (no tEXt chunk 'ccv3' or 'chara')")


def _text_chunks(data: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    at = len(_PNG)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if len(body) < length:
            raise ImportRejected(f"{where}: cut off inside the chunk {kind!r}; fetch the picture again")
        if kind == b"tEXt":
            keyword, _, value = body.partition(b"\x00")
            yield keyword.decode("latin-1").casefold(), value
        if kind == b"IEND":
            return
        at += 12 + length


# --- cards and books -----------------------------------------------------------------------------------


def _card(data: Mapping[str, Any], fallback: str) -> ImportedLore:
    name = _text(data.get("name")) or fallback
    called = _text(data.get("nickname")) or name
    macros = {"char": called, "user": "you"}
    texts = [_text(data.get(key)) for key in ("description", "personality", "scenario")]
    sheet = "\n\n".join(_expand(text, macros) for text in texts if text)
    book = data.get("character_book")
    lore = _book(book, name, macros) if isinstance(book, Mapping) else ImportedLore(name)
    lore.name = name
    for key, kind in (*((key, str) for key in _CARD_TEXTS), ("character_book", Mapping)):
        if data.get(key) is not None and not isinstance(data[key], kind):
            what = "text" if kind is str else "an object"
            lore.skipped.append(f"{key}: expected {what}, got {type(data[key]).__name__}")
    lore.characters.append(Character(name, sheet, _expand(_text(data.get("first_mes")), macros)))
    return lore


def _book(book: Mapping[str, Any], name: str, macros: Mapping[str, str]) -> ImportedLore:
    lore = ImportedLore(name)
    entries = book.get("entries")
    items = entries.values() if isinstance(entries, Mapping) else entries if isinstance(entries, list) else ()
    if len(items) > MAX_ENTRIES:
        raise ImportRejected(f"{name}: {len(items):,} entries are more than the {MAX_ENTRIES:,} allowed")
    if items and not any(isinstance(item, Mapping) for item in items):
        raise ImportRejected(f"{name}: no world info: none of its 'entries' is an object")
    for number, item in enumerate(items):
        if not isinstance(item, Mapping):
            lore.skipped.append(f"entry {number}: expected an object")
            continue
        _read_entry(item, number, macros, lore)
    return lore


def _read_entry(item: Mapping[str, Any], number: int, macros: Mapping[str, str], lore: ImportedLore) -> None:
    """One entry, in the words of world info (`key`, `disable`) or of a card's book (`keys`, `enabled`)."""
    name = _text(item.get("comment")) or _text(item.get("name")) or f"entry {number}"
    if item.get("disable") is True or item.get("enabled") is False:
        lore.skipped.append(f"{name}: switched off in the file")
        return
    content = item.get("content")
    if not isinstance(content, str):
        found = "there is none" if content is None else f"got {type(content).__name__}"
        lore.skipped.append(f"{name}: the content must be text; {found}")
        return
    # V3 spec, Decorators: those an application does not know are ignored, and trimmed from the content.
    text = _expand(_DECORATOR.sub("", content).strip(), macros)
    if not text:
        return  # a heading in somebody's list
    always = item.get("constant") is True
    cased = (item.get("caseSensitive") or item.get("case_sensitive")) is True
    form = ("/{}/" if cased else "/{}/i") if item.get("use_regex") is True else ""
    keys, bad = _keywords(item.get("keys", item.get("key")), form, macros)
    also, bad_also = _keywords(item.get("secondary_keys", item.get("keysecondary")), form, macros)
    lore.skipped += [f"{name}: {one}" for one in (*bad, *bad_also)]
    if not keys and not always:
        if not bad:
            lore.skipped.append(f"{name}: no keyword, and not constant")
        return
    selective = item.get("selective", "key" in item) is True  # world info tests both unless told otherwise
    extensions = item.get("extensions")
    extended = extensions if isinstance(extensions, dict) else {}
    logic = item.get("selectiveLogic", extended.get("selectiveLogic"))
    order = item.get("order", item.get("insertion_order"))
    lore.entries.append(
        LoreEntry(
            text,
            tuple(keys),
            tuple(also) if selective else (),
            _LOGIC.get(logic, "any") if isinstance(logic, int) else "any",
            always=always,
            case_sensitive=cased,
            order=int(order) if isinstance(order, int | float) and not isinstance(order, bool) else 100,
            name=name,
        )
    )


def _keywords(value: Any, form: str, macros: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Keywords that can be used, as expressions of `form` where it is given, and complaints about the others."""
    raw = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else [value]
    good: list[str] = []
    bad: list[str] = []
    for item in raw if value is not None else ():
        if not isinstance(item, str):
            bad.append(f"the keyword {item!r} is no text")
        elif key := item.strip():
            key = form.format(key) if form and not key.startswith("/") else _expand(key, macros)
            try:
                expression(key)
                good.append(key)
            except LoreInvalid as error:
                bad.append(f"the keyword {key!r} is left out: {error}")
    return good, bad


def _expand(text: str, macros: Mapping[str, str]) -> str:
    """{{char}} and {{user}}, also written <char> and <user>, become names."""
    return _MACRO.sub(lambda found: macros.get((found[1] or found[2]).casefold(), found[0]), text)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
