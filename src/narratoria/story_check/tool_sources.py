"""The words in the sources of tools: what a tool may write can only be guessed from them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

_LARGEST: Final = 4 * 1024 * 1024  # bytes of a file that are read
_MOST: Final = 64 * 1024 * 1024  # of all
_KITS: Final = frozenset({"narratoria", "narratoria_sdk"})  # files of our kits, as `new tool` copies them
_WORD: Final = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*")
_QUOTED: Final = re.compile(r"\"([^\"\n]{1,80})\"|'([^'\n]{1,80})'")


@dataclass(frozen=True)
class ToolSources:
    """The text of every file of the tools, of compiled ones too."""

    text: str = ""

    @classmethod
    def read(cls, folders: Iterable[Path]) -> ToolSources:
        parts, left = [], _MOST
        for path in _files(folders):
            try:
                with path.open("rb") as file:
                    content = file.read(min(_LARGEST, left))
            except OSError:
                continue
            left -= len(content)
            parts.append(content.decode("utf-8", "replace"))
        return cls("\n".join(parts))

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word, also the parts of one with hyphens."""
        whole = set(_WORD.findall(self.text))
        return frozenset(whole | {part for word in whole if "-" in word for part in word.split("-")})

    @cached_property
    def quoted(self) -> frozenset[str]:
        return frozenset(one or other for one, other in _QUOTED.findall(self.text))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Words that a source may put together with something: `room_` of `f"room_{number}"`."""
        return tuple(word for word in self.words if len(word) > 2 and word.endswith("_"))

    def mention(self, word: str) -> bool:
        """Tell if a tool could write a key or a value of this name."""
        return word in self.words or word in self.quoted or word.startswith(self.stems)

    def write_key(self, word: str) -> bool:
        """Tell if a source has the word where a key stands: quoted, or before `=` or `:`."""
        return word in self.quoted or re.search(rf"\b{re.escape(word)}\s*[=:]", self.text) is not None


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for place, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if not name.startswith(".") and name != "__pycache__")
            yield from (
                Path(place, name)
                for name in sorted(names)
                if not name.startswith(".")
                and not name.endswith(".md")
                and name.partition(".")[0] not in _KITS
            )
