"""A session in one file: `.narratoria`, a zip with the journal as NDJSON and the assets by hash.

A branch is exported with the past it shares, so the file stands alone. An import trusts nothing in the file:
names, sizes and hashes are checked while reading, never taken from the zip's own directory.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from narratoria.errors import JournalError
from narratoria.events import AssetStored, SessionStarted
from narratoria.session import chunks
from narratoria.session.assets import AssetStore
from narratoria.session.session import Record
from narratoria.session.store import SessionMeta, Store

FORMAT: Final = 1
SUFFIX: Final = ".narratoria"
MAX_ASSETS: Final = 100_000
MAX_TOTAL: Final = 4 * 1024**3
MAX_LINE: Final = 64 * 1024**2

_STORY: Final = re.compile(r"[a-z0-9_-]{1,100}")
_LATEST: Final = 253_402_214_400.0  # the last day of the year 9999, beyond which no clock goes
_LARGEST: Final = 1 << 53
_ASSET: Final = re.compile(r"assets/([0-9a-f]{64})")
_BLOCK: Final = 1 << 20
_WHEN: Final = (1980, 1, 1, 0, 0, 0)  # the same session gives the same file


class Manifest(msgspec.Struct, kw_only=True, rename="camel"):
    """`session.json`: what the file holds, and the hash of the journal."""

    format: int
    session: SessionMeta
    records: int
    journal_sha256: str
    assets: list[str]
    missing: list[str] = msgspec.field(default_factory=list)


def export_session(store: Store, session_id: str, target: Path | BinaryIO) -> Manifest:
    """Write a session to a file, in full or not at all."""
    if not isinstance(target, Path):
        return _export(store, session_id, target)
    with replacing(target) as file:
        return _export(store, session_id, file)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file that takes its place once it is complete; until then, and if that fails, the old one stays."""
    try:
        if target.exists() and not target.is_file():  # a pipe or a device is written to, not replaced
            with target.open("wb") as file:
                yield file
            return
        partial = target.with_name(target.name + ".part")
        try:
            with partial.open("wb") as file:
                yield file
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise JournalError(f"{target}: {error.strerror or error}; nothing was exported") from None


def _is_whole(assets: AssetStore, digest: str) -> bool:
    """Whether the store still has that content, unchanged."""
    hasher = hashlib.sha256()
    try:
        with assets.path_of(digest).open("rb") as content:
            while block := content.read(_BLOCK):
                hasher.update(block)
    except (KeyError, OSError):
        return False
    return hasher.hexdigest() == digest


def _export(store: Store, session_id: str, file: BinaryIO) -> Manifest:
    meta = msgspec.structs.replace(store.meta(session_id), folder=None)  # nobody else's business
    hasher, count = hashlib.sha256(), 0
    assets: dict[str, None] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        with archive.open(zipfile.ZipInfo("journal.ndjson", _WHEN), "w", force_zip64=True) as journal:
            for record in store.read(session_id):
                line = chunks.to_lines([record])
                journal.write(line)
                hasher.update(line)
                count += 1
                if isinstance(record.event, AssetStored):
                    assets.setdefault(record.event.hash)
        kept = [digest for digest in assets if _is_whole(store.assets, digest)]
        for digest in kept:
            with (
                archive.open(zipfile.ZipInfo(f"assets/{digest}", _WHEN), "w", force_zip64=True) as copy,
                store.assets.path_of(digest).open("rb") as content,
            ):
                while block := content.read(_BLOCK):
                    copy.write(block)
        manifest = Manifest(
            format=FORMAT,
            session=meta,
            records=count,
            journal_sha256=hasher.hexdigest(),
            assets=kept,
            missing=[digest for digest in assets if digest not in kept],
        )
        archive.writestr(zipfile.ZipInfo("session.json", _WHEN), msgspec.json.encode(manifest))
    return manifest


# --- importing --------------------------------------------------------------------------------------------


def import_session(store: Store, source: Path | BinaryIO, *, limit: int = MAX_TOTAL) -> SessionMeta:
    """Take a session in. It keeps its id where that is free. `JournalError` says why a file is refused."""
    name = str(source) if isinstance(source, Path) else "the file"
    try:
        with zipfile.ZipFile(source) as archive:
            return _Import(store, archive, name, limit).run()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise JournalError(f"{name} is not a whole {SUFFIX} file ({error}); nothing was imported") from None
    except OSError as error:
        raise JournalError(f"{name}: {error.strerror or error}; nothing was imported") from None


class _Import:
    def __init__(self, store: Store, archive: zipfile.ZipFile, name: str, limit: int) -> None:
        self.store = store
        self.archive = archive
        self.name = name
        self.left = limit

    def refuse(self, reason: str) -> JournalError:
        return JournalError(f"{self.name}: {reason}; nothing was imported")

    def run(self) -> SessionMeta:
        names = self.archive.namelist()
        self.check_names(names)
        manifest = self.manifest()
        known = {match[1] for name in names if (match := _ASSET.fullmatch(name))}
        lacking = sorted(set(manifest.assets) - known)
        if lacking:
            raise self.refuse(f"asset {lacking[0]} is missing")
        for digest in sorted(known):
            self.asset(digest)
        meta = msgspec.structs.replace(manifest.session, folder=None, parent=None, parent_turn=None)
        self.check_story(meta.story)
        for ts in (meta.created, meta.updated):
            self.check_time(ts)
        return self.store.adopt(meta, self.records(manifest), lacking=True)

    def check_story(self, story: str | None) -> None:
        """A story is looked up by this name, and a folder is a name too: a file must not choose one."""
        if story is not None and not _STORY.fullmatch(story):
            raise self.refuse(f"{story[:100]!r} is not the id of a story")

    def check_time(self, ts: float) -> None:
        if not 0 <= ts < _LATEST:
            raise self.refuse(f"{ts!r} is not a time")

    def check(self, record: Record, manifest: Manifest) -> None:
        """What the types allow and no session has."""
        event = record.event
        self.check_time(record.ts)
        for turn in (record.turn, getattr(event, "turn", None), getattr(event, "parent_turn", None)):
            if turn is not None and not 0 <= turn < _LARGEST:
                raise self.refuse(f"record {record.seq}: {turn} is not the number of a turn")
        if not 0 < record.seq < _LARGEST:
            raise self.refuse(f"{record.seq} is not the number of a record")
        if isinstance(event, SessionStarted):
            self.check_story(event.story)
        elif (
            isinstance(event, AssetStored)
            and event.hash not in manifest.missing
            and event.hash not in self.store.assets
        ):
            raise self.refuse(f"asset {event.hash[:100]} is missing")

    def check_names(self, names: list[str]) -> None:
        if len(names) > MAX_ASSETS:
            raise self.refuse(f"it holds {len(names):,} files, more than the {MAX_ASSETS:,} allowed")
        if len(set(names)) != len(names):
            raise self.refuse("a name in it appears twice")
        for name in names:
            if name not in ("session.json", "journal.ndjson") and not _ASSET.fullmatch(name):
                raise self.refuse(f"it holds {name[:100]!r}, which no session has")
        for name in ("session.json", "journal.ndjson"):
            if name not in names:
                raise self.refuse(f"it has no {name}")

    def manifest(self) -> Manifest:
        content = b"".join(self.blocks("session.json", 16 * _BLOCK))
        try:
            version = msgspec.json.decode(content, type=_Version).format
            if version > FORMAT:
                raise self.refuse(f"it is of format {version}, this Narratoria reads up to {FORMAT}; upgrade")
            return msgspec.json.decode(content, type=Manifest)
        except msgspec.MsgspecError as error:
            raise self.refuse(f"session.json: {error}") from None

    def blocks(self, name: str, most: int | None = None) -> Iterator[bytes]:
        """The content as it is unpacked, counted: a small file may unpack to far more than it claims."""
        with self.archive.open(name) as content:
            while block := content.read(_BLOCK):
                self.left -= len(block)
                most = None if most is None else most - len(block)
                if self.left < 0 or (most is not None and most < 0):
                    raise self.refuse(f"{name} unpacks to more than is allowed")
                yield block

    def asset(self, digest: str) -> None:
        hasher = hashlib.sha256()
        content = bytearray()
        for block in self.blocks(f"assets/{digest}", self.store.assets.cap):
            hasher.update(block)
            content += block
        if hasher.hexdigest() != digest:
            raise self.refuse(f"asset {digest} does not have that hash; the file was changed")
        self.store.assets.add_bytes(bytes(content))

    def records(self, manifest: Manifest) -> Iterator[Record]:
        hasher, count, rest = hashlib.sha256(), 0, b""
        for block in self.blocks("journal.ndjson"):
            hasher.update(block)
            lines, newline, rest = (rest + block).rpartition(b"\n")
            if len(rest) > MAX_LINE:
                raise self.refuse("a line of journal.ndjson is too long")
            for record in self.decoded(lines + newline):
                count += 1
                self.check(record, manifest)
                yield record
        if rest or count != manifest.records or hasher.hexdigest() != manifest.journal_sha256:
            raise self.refuse("journal.ndjson is not the one session.json speaks of; the file was changed")

    def decoded(self, lines: bytes) -> list[Record]:
        try:
            return chunks.from_lines(lines)
        except msgspec.MsgspecError as error:
            raise self.refuse(f"journal.ndjson: {error}") from None


class _Version(msgspec.Struct):
    format: int
