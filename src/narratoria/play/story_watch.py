"""A watch over files: which of them were saved since the last look."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

WATCH_SECONDS: Final = 0.5  # between two looks
MOST_FILES: Final = 5_000
_SHOWN: Final = 3  # names in a notice
_SKIPPED: Final = frozenset({".git", "__pycache__", "node_modules", ".venv"})
Marks: TypeAlias = dict[str, tuple[int, int, int]]  # by name: time, size and inode


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


class FileWatch:
    """Watches the files below a folder, or one file and its manifest."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._marks = self._look()

    def changed(self) -> list[str]:
        """Return the names of files that were made, saved or removed since the last call, sorted."""
        before, self._marks = self._marks, self._look()
        names = before.keys() | self._marks.keys()
        return sorted(name for name in names if before.get(name) != self._marks.get(name))

    def news(self) -> str:
        """Return what was saved and what was removed since the last call, in words; empty if nothing was."""
        names = self.changed()
        saved = [name for name in names if name in self._marks]
        gone = [name for name in names if name not in self._marks]
        return ", ".join(
            f"{_listed(some)} {what}" for some, what in ((saved, "saved"), (gone, "removed")) if some
        )

    def _look(self) -> Marks:
        found: Marks = {}
        for path in self._files():
            try:
                seen = path.stat()
            except OSError:  # removed between two looks
                continue
            inside = path != self.root and path.is_relative_to(self.root)
            name = str(path.relative_to(self.root)) if inside else path.name
            found[name] = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
            if len(found) >= MOST_FILES:
                break
        return found

    def _files(self) -> Iterator[Path]:
        if not self.root.is_dir():
            yield self.root
            yield from {self.root.with_name(f"{name}.tool.json") for name in (self.root.name, self.root.stem)}
            return
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(one for one in folders if one not in _SKIPPED)
            for name in sorted(files):
                if not name.startswith(".") and not name.endswith(("~", ".swp", ".pyc")):
                    yield Path(folder, name)
