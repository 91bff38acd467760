"""The history of writes to a host folder, so that a failed call's writes can be taken back one by one.

Per path there is a chain of writes that may still be undone, the oldest first; each keeps the content it replaced.
When a write in the middle is taken back, the next one inherits that content; when the last is, the file is put back.
So calls that write the same file at once never bring back a failed call's content.
"""

from __future__ import annotations

import stat
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from narratoria.session.resources.file_changes import DIRECTORY
from narratoria.session.resources.host_folder import HostFolder, PathRefusedError, Stamp, stamp_of
from narratoria.session.resources.write_notes import CallNotes, Kept, Left, Note

Parts: TypeAlias = tuple[str, ...]


class Writer(Protocol):
    """An owner of changes: a filesystem, or a call's draft of one."""

    writes: list[Write]
    notes: CallNotes | None


class Write:
    """One owner's change to one path: the content before, and after (None: nothing) with its hash; and the note of it
    that outlives the process, for a call of a session that is kept.
    """

    __slots__ = ("before", "digest", "left", "note", "owner", "parts")

    def __init__(
        self,
        owner: Writer,
        parts: Parts,
        before: Kept | None,
        left: Stamp | str | None,
        note: Note | None,
    ) -> None:
        self.owner = owner
        self.parts = parts
        self.before = before
        self.left = left
        self.digest: str | None = None
        self.note = note


class FileHistory:
    """The open writes of one host folder, shared by all drafts of it."""

    def __init__(self, folder: HostFolder) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self._chains: dict[Parts, list[Write]] = {}

    def begin(self, owner: Writer, parts: Parts, writes: list[Write], left: Left) -> Write:
        """Record that `owner` is about to change `parts`; its entry is added to `writes` unless it is there."""
        chain = self._chains.get(parts, [])
        if chain and chain[-1].owner is owner:
            if (note := chain[-1].note) is not None:
                note.will_leave(left)
            return chain[-1]
        before = self._keep(parts)
        noted = None if owner.notes is None else owner.notes.begin("/".join(parts), before, left)
        write = Write(owner, parts, before, self._present(parts), noted)
        self._chains.setdefault(parts, chain).append(write)
        writes.append(write)
        return write

    def oldest_before(self, write: Write) -> Write | None:
        """Return the open write whose earlier content an undo of `write` restores: the oldest, as those before `write`
        are forgotten with it. None if `write` itself is: a later one that stands was committed first.
        """
        chain = self._chains.get(write.parts, [])
        return chain[0] if write in chain else None

    def hand_over(self, writes: Sequence[Write], owner: Writer, to: list[Write]) -> None:
        """Hand the writes of a nested call to the enclosing call."""
        for write in writes:
            write.owner = owner
            chain = self._chains.get(write.parts, [])
            if write not in chain:
                continue
            index = chain.index(write)
            if index and chain[index - 1].owner is owner:
                chain[index - 1].left, chain[index - 1].digest = write.left, write.digest
                _merge_notes(chain[index - 1].note, write.note)
                del chain[index]
            else:
                to.append(write)

    def settle(self, writes: Sequence[Write]) -> None:
        """Make these writes final, and forget those before them."""
        for write in writes:
            chain = self._chains.get(write.parts, [])
            if write in chain:
                final = chain[: chain.index(write) + 1]
                del chain[: len(final)]
                for one in final:
                    if one.note is not None:
                        one.note.settle()
                if not chain:
                    del self._chains[write.parts]

    def take_back(self, writes: Sequence[Write]) -> list[str]:
        """Undo these writes, the last first. Return those left as they are, with the reason."""
        problems: list[str] = []
        waiting = deque(reversed(writes))
        while waiting:
            write = waiting.popleft()
            chain = self._chains.get(write.parts, [])
            if write not in chain:
                continue  # settled by a later write that stands
            index = chain.index(write)
            if index + 1 < len(chain):
                chain[index + 1].before = write.before
                if (note := chain[index + 1].note) is not None:
                    note.now_before(write.before)
                _drop_note(write)
                del chain[index]
                continue
            chain.pop()
            try:
                problem = self._put_back(write, chain, waiting)
            except (OSError, PathRefusedError) as error:  # the others are put back all the same
                problem = f"{'/'.join(write.parts)} was not put back: {error}"
            if problem:
                problems.append(problem)
            if write not in chain:  # else another call has it now, or it comes again
                _drop_note(write)
            if not self._chains.get(write.parts):
                self._chains.pop(write.parts, None)
        return problems

    def _put_back(self, write: Write, chain: list[Write], waiting: deque[Write]) -> str | None:
        path = "/".join(write.parts)
        if self._present(write.parts) != write.left:
            return f"{path} was left as it is: something else changed it after the call that failed"
        restored: Stamp | str | None = None
        if write.left == DIRECTORY and write.before is not None and write.before.data is None:
            # A delete that did not come about, or a directory made again.
            self.folder.set_mode(write.parts, write.before.mode)
            return None
        if write.left == DIRECTORY:
            if not self.folder.remove_directory(write.parts):
                return self._leave_directory(write, waiting)
        elif write.left is not None and (write.before is None or write.before.data is None):
            self.folder.remove(write.parts)
        if write.before is not None:
            self._make_parents(write.parts)
            if write.before.data is None:
                self.folder.make_directory(write.parts, write.before.mode)
                restored = DIRECTORY
            else:
                restored = self.folder.replace(write.parts, write.before.data, write.before.mode)
        if chain:
            chain[-1].left = restored
        return None

    def _make_parents(self, parts: Parts) -> None:
        """Make the directories above a path again: another call may have removed them, empty as they were."""
        for depth in range(1, len(parts)):
            if self.folder.look(parts[:depth]) is None:
                self.folder.make_directory(parts[:depth])

    def _leave_directory(self, write: Write, waiting: deque[Write]) -> str | None:
        """Hand a directory that holds files of other calls to one of them, which may still fail. One that holds files
        of this call comes again after them.
        """
        depth = len(write.parts)
        inner = [
            chain[-1]
            for parts, chain in self._chains.items()
            if parts[:depth] == write.parts and len(parts) > depth and chain
        ]
        if any(one in waiting for one in inner):
            waiting.append(write)
            self._chains[write.parts].append(write)
            return None
        for one in inner:
            heir = one.owner
            if heir is not write.owner:
                write.owner = heir
                if write.note is not None:
                    write.note.hand_to(heir.notes)
                heir.writes.insert(0, write)
                self._chains[write.parts].append(write)
                return None
        return f"the directory {'/'.join(write.parts)} was left: it holds what others wrote"

    def _keep(self, parts: Parts) -> Kept | None:
        found = self.folder.look(parts)
        if found is None:
            return None
        if stat.S_ISDIR(found.st_mode):
            return Kept(None, stat.S_IMODE(found.st_mode))
        return Kept(self.folder.read(parts), stat.S_IMODE(found.st_mode))

    def _present(self, parts: Parts) -> Stamp | str | None:
        found = self.folder.look(parts)
        if found is None:
            return None
        return DIRECTORY if stat.S_ISDIR(found.st_mode) else stamp_of(found)


def _merge_notes(earlier: Note | None, later: Note | None) -> None:
    if later is not None and earlier is not None:
        earlier.merge(later)


def _drop_note(write: Write) -> None:
    if write.note is not None:
        write.note.drop()
