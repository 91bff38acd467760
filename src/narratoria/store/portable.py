"""A session in one file: `.narratoria`, a zip with the journal as NDJSON and the assets by hash.

A branch is exported with the past it shares, so the file stands alone. An import trusts nothing in the file: names,
sizes and hashes are checked while reading, never taken from the zip's own directory. It imports the session whole or
not at all: the file is read once to be checked, with its assets unpacked aside, before anything is written to the
database, which would not shrink again; the assets move to their places together.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from narratoria import bounds
from narratoria.errors import AssetRefused, JournalError
from narratoria.events import AnyRuntimeEvent, AssetStored, RecordsLost
from narratoria.session.private_files import FILE, make_file
from narratoria.session.record import Record
from narratoria.store import record_batches as chunks
from narratoria.store.imported_journal import MAX_LINE, ImportedJournal, check_story, check_time
from narratoria.store.imported_snapshot import Unfit, read_snapshot
from narratoria.store.store import Adoption, SessionMeta, Store
from narratoria.strict_json import check_whole
from narratoria.tools.schema.excerpts import excerpt
from narratoria.typed_values import decoder
from narratoria.unicode_text import as_one_line

FORMAT: Final = 1
SUFFIX: Final = ".narratoria"
MAX_ASSETS: Final = 100_000
MAX_TOTAL: Final = 4 * 1024**3
LONGEST_TITLE: Final = 200

_ASSET: Final = re.compile(r"assets/([0-9a-f]{64})")
_BLOCK: Final = 1 << 20
_PACKINGS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_REFUSED_PACKINGS: Final = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}
_WHEN: Final = (1980, 1, 1, 0, 0, 0)  # the same session gives the same file


class ExportManifest(msgspec.Struct, kw_only=True, rename="camel"):
    """The document `session.json`: the contents of the file, and the hash of the journal."""

    format: int
    session: SessionMeta
    records: int
    journal_sha256: str
    assets: list[str]
    missing: list[str] = msgspec.field(default_factory=list)


GivenUp = Callable[[], bool]
"""Asked again and again while a file is written or read: True to leave it, with nothing done."""


def _never() -> bool:
    return False


def export_session(
    store: Store, session_id: str, target: Path | BinaryIO, *, given_up: GivenUp = _never
) -> ExportManifest:
    """Write a session to a file, in full or not at all."""
    if not isinstance(target, Path):
        return _export(store, session_id, target, given_up)
    with replacing(target) as file:
        return _export(store, session_id, file, given_up)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `target` once it is complete; until then, and on a failure, the old one stays."""
    try:
        if target.exists() and not target.is_file():  # a pipe or a device is written to, not replaced
            with target.open("wb") as file:
                yield file
            return
        partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
        # A new name and O_EXCL: what somebody else has put there is neither written to nor followed.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, FILE)
                yield file
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise JournalError(f"{target}: {error.strerror or error}; nothing was exported") from None


def _spoken_of(event: AnyRuntimeEvent) -> Iterator[str]:
    """Yield the hashes of the assets that a record brings."""
    if isinstance(event, AssetStored):
        yield event.hash
    elif isinstance(event, RecordsLost) and event.resumed is not None:
        for stored in read_snapshot(event.resumed, "a loss").assets.values():
            yield stored.hash


def _export(store: Store, session_id: str, file: BinaryIO, given_up: GivenUp) -> ExportManifest:
    meta = msgspec.structs.replace(store.meta(session_id), folder=None)  # nobody else's business
    hasher, count = hashlib.sha256(), 0
    assets: dict[str, None] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        with archive.open(zipfile.ZipInfo("journal.ndjson", _WHEN), "w", force_zip64=True) as journal:
            for record in store.read(session_id):
                if given_up():
                    raise JournalError("the export was given up; nothing was exported")
                line = chunks.to_lines([record])
                journal.write(line)
                hasher.update(line)
                count += 1
                for digest in _spoken_of(record.event):
                    assets.setdefault(digest)
        kept = [digest for digest in assets if store.assets.is_whole(digest)]
        for digest in kept:
            with (
                archive.open(zipfile.ZipInfo(f"assets/{digest}", _WHEN), "w", force_zip64=True) as copy,
                store.assets.path_of(digest).open("rb") as content,
            ):
                while block := content.read(_BLOCK):
                    if given_up():
                        raise JournalError("the export was given up; nothing was exported")
                    copy.write(block)
        manifest = ExportManifest(
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


def import_session(
    store: Store,
    source: Path | BinaryIO,
    *,
    limit: int = MAX_TOTAL,
    given_up: GivenUp = _never,
    owner: str | None = None,
) -> SessionMeta:
    """Import a session, for a player if `owner` is given. It keeps its id if that is free. `JournalError` says why a
    file is refused.
    """
    name = str(source) if isinstance(source, Path) else "the file"
    try:
        with zipfile.ZipFile(source) as archive:
            return _Import(store, archive, name, limit, given_up).run(owner)
    except Unfit as error:
        raise JournalError(f"{name}: {error}; nothing was imported") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise JournalError(f"{name} is not a whole {SUFFIX} file ({error}); nothing was imported") from None
    except OSError as error:
        raise JournalError(f"{name}: {error.strerror or error}; nothing was imported") from None


class _Import:
    def __init__(
        self, store: Store, archive: zipfile.ZipFile, name: str, limit: int, given_up: GivenUp
    ) -> None:
        self.store = store
        self.archive = archive
        self.name = name
        self.limit = self.left = limit
        self.given_up = given_up
        self.incoming = ImportedJournal()
        self.packed: set[str] = set()  # hashes of the assets in the file

    def run(self, owner: str | None) -> SessionMeta:
        names = self.archive.namelist()
        self.check_names(names)
        self.check_packing()
        self.packed = {match[1] for name in names if (match := _ASSET.fullmatch(name))}
        manifest = self.manifest()
        lacking = sorted(set(manifest.assets) - self.packed)
        if lacking:
            raise Unfit(f"asset {lacking[0][:100]} is missing")
        meta = manifest.session
        check_story(meta.story)
        for ts in (meta.created, meta.updated):
            check_time(ts)
        meta = msgspec.structs.replace(
            meta, folder=None, parent=None, parent_turn=None, title=_one_line(meta.title)
        )
        staging = self.staging()
        try:
            for _ in self.records(manifest):
                pass
            self.unpack_all(staging)
            self.left, self.incoming = self.limit, ImportedJournal()
            return self.store.adopt(
                meta,
                self.records(manifest),
                Adoption(owner=owner, lacking=True, accepted=lambda: self.take_all(staging), step=self.go_on),
            )
        except JournalError as error:
            raise JournalError(f"{self.name}: {error}; nothing was imported") from None
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def go_on(self) -> None:
        if self.given_up():
            raise Unfit("the import was given up")

    def staging(self) -> Path:
        try:
            return self.store.assets.staging()
        except AssetRefused as error:
            raise JournalError(f"{self.name}: {error}; nothing was imported") from None

    def check_names(self, names: list[str]) -> None:
        if len(names) > MAX_ASSETS:
            raise Unfit(f"it holds {len(names):,} files, more than the {MAX_ASSETS:,} allowed")
        if len(set(names)) != len(names):
            raise Unfit("a name in it appears twice")
        for name in names:
            if name not in ("session.json", "journal.ndjson") and not _ASSET.fullmatch(name):
                raise Unfit(f"it holds {name[:100]!r}, which no session has")
        for name in ("session.json", "journal.ndjson"):
            if name not in names:
                raise Unfit(f"it has no {name}")

    def check_packing(self) -> None:
        """Refuse bzip2 and LZMA: no limit holds while they unpack, and 2 kB of them cost gigabytes."""
        for one in self.archive.infolist():
            if one.header_offset < 0:  # its directory counts from the end, and something before it is gone
                raise zipfile.BadZipFile(f"the beginning of {one.filename[:100]!r} is missing")
            if one.compress_type not in _PACKINGS:
                how = _REFUSED_PACKINGS.get(one.compress_type, f"method {one.compress_type}")
                raise Unfit(
                    f"{one.filename} is packed by {how}; pack it with `zip`, which stores or deflates, or export anew"
                )

    def manifest(self) -> ExportManifest:
        content = b"".join(self.blocks("session.json", 16 * _BLOCK))
        try:
            bounds.check(content)
            version = decoder(_Version).decode(content).format
            if version > FORMAT:
                raise Unfit(f"it is of format {version}, this Narratoria reads up to {FORMAT}; upgrade")
            check_whole(content)
            return decoder(ExportManifest).decode(content)
        except Unfit:
            raise
        except (ValueError, RecursionError) as error:
            raise Unfit(f"session.json: {excerpt(error)}") from None

    def blocks(self, name: str, most: int | None = None) -> Iterator[bytes]:
        """Yield the content as it is unpacked, and count it: a small file may unpack to far more than it claims."""
        with self.archive.open(name) as content:
            while block := content.read(_BLOCK):
                self.go_on()
                self.left -= len(block)
                most = None if most is None else most - len(block)
                if self.left < 0 or (most is not None and most < 0):
                    raise Unfit(f"{name} unpacks to more than is allowed")
                yield block

    # --- the journal -----------------------------------------------------------------------------------------

    def records(self, manifest: ExportManifest) -> Iterator[Record]:
        hasher, read = hashlib.sha256(), 0
        for block in self.lines(hasher):
            for record in self.incoming.records(block):
                self.go_on()
                read += 1
                yield record
        if read != manifest.records or hasher.hexdigest() != manifest.journal_sha256:
            raise Unfit("journal.ndjson is not the one session.json speaks of; the file was changed")
        missing = self.incoming.assets.keys() - self.packed - set(manifest.missing)
        if missing:
            raise Unfit(f"asset {min(missing)} is missing")
        spare = self.packed - self.incoming.assets.keys()
        if spare:
            raise Unfit(f"no record speaks of asset {min(spare)}")
        yield from self.incoming.close()

    def lines(self, hasher: hashlib._Hash) -> Iterator[bytes]:
        """Yield the journal in pieces of whole lines. A long line gathers in a list, so that it is copied once."""
        partial: list[bytes] = []
        waiting = 0
        for block in self.blocks("journal.ndjson"):
            hasher.update(block)
            lines, newline, rest = block.rpartition(b"\n")
            if newline:
                yield b"".join([*partial, lines, newline])
                partial, waiting = [], 0
            partial.append(rest)
            waiting += len(rest)
            if waiting > MAX_LINE:
                raise Unfit("a line of journal.ndjson is too long")
        if waiting:
            raise Unfit("journal.ndjson ends in the middle of a line; the file was changed")

    # --- assets ----------------------------------------------------------------------------------------------

    def wanted(self) -> list[AssetStored]:
        return [stored for digest, stored in self.incoming.assets.items() if digest in self.packed]

    def unpack_all(self, staging: Path) -> None:
        """Unpack all assets. Called when the journal was found good."""
        wanted = self.wanted()
        sizes = sum(stored.size for stored in wanted)
        if sizes > self.left:
            raise Unfit(f"its assets have {sizes:,} bytes, more than is allowed")
        free = shutil.disk_usage(staging).free
        if sizes > free:
            raise Unfit(f"its assets have {sizes:,} bytes, and there is room for {free:,}")
        for stored in wanted:
            self.unpack(stored, staging / stored.hash)

    def take_all(self, staging: Path) -> Iterator[AssetStored]:
        """Put the unpacked assets in their places. Called when the session is in the database."""
        for stored in self.wanted():
            self.store.assets.take(staging / stored.hash, stored.hash)
            yield stored

    def unpack(self, stored: AssetStored, target: Path) -> None:
        hasher = hashlib.sha256()
        most = min(stored.size, self.store.assets.cap)
        make_file(target)
        with target.open("wb") as copy:
            for block in self.blocks(f"assets/{stored.hash}", most):
                hasher.update(block)
                copy.write(block)
        if hasher.hexdigest() != stored.hash:
            raise Unfit(f"asset {stored.hash} does not have that hash; the file was changed")


class _Version(msgspec.Struct):
    format: int


def _one_line(title: str | None) -> str | None:
    """Return a title as one line: it stands on cards, in menus and in the names of files."""
    if title is None:
        return None
    return as_one_line(title[: 4 * LONGEST_TITLE])[:LONGEST_TITLE] or None
