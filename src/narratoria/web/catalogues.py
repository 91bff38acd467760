"""The words of the page in each language: one catalogue a language, and the choice of one for a request.

A catalogue is a JSON file in `words/`, named by its language tag (`de.json`). Its keys are those of every other; a text
holds `{name}` where a value stands, and is an object of plural forms where it counts (`one`, `other`, …: the categories
of `Intl.PluralRules`, chosen by `{count}`). `$name` is the language in its own words, `$direction` how it is written.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from starlette.datastructures import Headers

ROOT: Final = Path(__file__).parent / "words"
MANIFEST: Final = "app.webmanifest"
DEFAULT: Final = "en"
COOKIE: Final = "narratoria-language"  # what a person chose in Settings
PROBLEM: Final = "problem."  # the messages of the API
NOTICE: Final = "notice."  # those that the journal keeps, which the page translates itself
MOST_ACCEPTED: Final = 20  # languages read of a header
MOST_BYTES: Final = 128 * 1024  # of one catalogue
_CHOSEN: Final = re.compile(rf"(?:^|;)\s*{COOKIE}=([A-Za-z0-9-]{{1,35}})\s*(?:;|$)")
_TAG: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_KEY: Final = re.compile(r"\{\{([a-z]+\.[\w.]+)\}\}")
_VALUE: Final = re.compile(r"\{(\w+)\}")
VARY: Final = "Accept-Encoding, Accept-Language, Cookie"

Words = Mapping[str, str | Mapping[str, str]]


class CatalogueInvalid(ValueError):
    """A file of words cannot be used."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The words of the interface in one language."""

    language: str
    name: str
    direction: str
    words: Words

    @classmethod
    def read(cls, path: Path) -> Self:
        content = path.read_bytes()
        if len(content) > MOST_BYTES:
            raise CatalogueInvalid(f"{path}: a catalogue has at most {MOST_BYTES:,} bytes")
        if not _TAG.fullmatch(path.stem):
            raise CatalogueInvalid(f"{path}: name the file by its language, as in de.json or pt-BR.json")
        found: dict[str, Any] = json.loads(content)
        name, direction = found.pop("$name"), found.pop("$direction", "ltr")
        if direction not in ("ltr", "rtl"):
            raise CatalogueInvalid(f"{path}: $direction is ltr or rtl, not {direction!r}")
        return cls(path.stem, name, direction, found)

    def say(self, key: str, **values: object) -> str:
        """Return the text of a key that does not count, with its values."""
        text = self.words[key]
        if not isinstance(text, str):
            raise CatalogueInvalid(f"{key!r} has plural forms, which only the page chooses from")
        return _VALUE.sub(lambda found: str(values[found[1]]), text)

    def of(self, keys: Iterable[str]) -> Words:
        """Return the words of these keys, in their order."""
        return {key: self.words[key] for key in sorted(set(keys))}

    def file_name(self, name: str) -> str:
        """Return the name of a file in this language: `later.js` is English, `later.de.js` German."""
        stem, dot, suffix = name.rpartition(".")
        return name if self.language == DEFAULT else f"{stem}.{self.language}{dot}{suffix}"

    def document(self, template: str) -> str:
        """Return an HTML document with its words in this language: `{{key}}` stands for the text of a key."""
        written = "" if self.direction == "ltr" else f' dir="{self.direction}"'
        page = _KEY.sub(lambda found: html.escape(self.say(found[1])), template)
        page = page.replace(f"/static/{MANIFEST}", f"/static/{self.file_name(MANIFEST)}")
        return page.replace('<html lang="en">', f'<html lang="{self.language}"{written}>')

    def manifest(self, template: str) -> str:
        """Return the manifest of the page in this language."""
        found: dict[str, Any] = json.loads(template)
        texts = {
            key: _KEY.sub(lambda one: self.say(one[1]), text)
            for key, text in found.items()
            if isinstance(text, str)
        }
        return json.dumps(found | texts | {"lang": self.language, "dir": self.direction}, ensure_ascii=False)


class Catalogues(Mapping[str, Catalogue]):
    """Every language there is, by its tag."""

    def __init__(self, *folders: Path) -> None:
        paths = [path for folder in folders for path in sorted(folder.glob("*.json"))]
        self._all = {path.stem: Catalogue.read(path) for path in paths}
        self._known: list[tuple[str, re.Pattern[str]]] = []

    def __getitem__(self, language: str) -> Catalogue:
        return self._all[language]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def chosen(self, headers: Headers) -> Catalogue:
        """Return the language for a browser: the one set there, else the first that it accepts and we have."""
        set_there = _CHOSEN.search(headers.get("cookie", ""))
        if set_there and set_there[1] in self:
            return self[set_there[1]]
        for tag in _accepted(headers.get("accept-language", "")):
            found = self._nearest(tag)
            if found is not None:
                return self[found]
        return self[DEFAULT]

    def translated(self, message: str, catalogue: Catalogue) -> str:
        """Return a message of the server, which is English, in another language; as it is where no catalogue has it.

        The rest of the program knows no catalogue: a message is found by its English text, with its values.
        """
        if catalogue.language == DEFAULT:
            return message
        for key, pattern in self._problems():
            found = pattern.fullmatch(message)
            if found and key in catalogue.words:
                return catalogue.say(key, **found.groupdict())
        return message

    def notices(self, catalogue: Catalogue) -> list[tuple[str, str]]:
        """Return the notices of the server in English and in another language."""
        english = self[DEFAULT]
        keys = [key for key in english.words if key.startswith(NOTICE) and key in catalogue.words]
        return (
            []
            if catalogue is english
            else [(str(english.words[key]), str(catalogue.words[key])) for key in keys]
        )

    def _problems(self) -> list[tuple[str, re.Pattern[str]]]:
        if not self._known:
            for key, text in self[DEFAULT].words.items():
                if key.startswith(PROBLEM) and isinstance(text, str):
                    self._known.append((key, _pattern(text)))
        return self._known

    def _nearest(self, tag: str) -> str | None:
        """Return the language of a tag or of the same tag with less after it, else a variety of it."""
        ours = {known.lower(): known for known in self}
        parts = tag.lower().split("-")  # RFC 4647 §3.4: looked up by dropping its last part
        for end in range(len(parts), 0, -1):
            if (known := ours.get("-".join(parts[:end]))) is not None:
                return known
        return next((known for low, known in ours.items() if low.split("-")[0] == parts[0]), None)


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a text with any values."""
    parts = re.split(r"\{(\w+)\}", text)
    return re.compile(
        "".join(f"(?P<{one}>.*?)" if place % 2 else re.escape(one) for place, one in enumerate(parts)),
        re.DOTALL,
    )


def _accepted(header: str) -> list[str]:
    """Return the languages of an `Accept-Language` header, the most wanted first."""
    weighed = []
    for place, one in enumerate(header.split(",", MOST_ACCEPTED)[:MOST_ACCEPTED]):
        tag, _, weight = one.strip().partition(";")
        found = re.fullmatch(r"\s*q=([01](?:\.[0-9]{0,3})?)\s*", weight) if weight else None
        quality = float(found[1]) if found else 1.0
        if tag and tag != "*" and quality > 0:
            weighed.append((-quality, place, tag.strip()))
    return [tag for _, _, tag in sorted(weighed)]


def in_words_of(headers: Headers, message: str) -> str:
    """Return a message of the server in the language of a browser."""
    return shipped().translated(message, shipped().chosen(headers))


@cache
def shipped() -> Catalogues:
    """Return the languages that come with Narratoria."""
    return Catalogues(ROOT)
