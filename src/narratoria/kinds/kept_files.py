"""Files in the answer of somebody else's server, put into the asset store."""

from __future__ import annotations

import asyncio
import mimetypes
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria.events import PROTOCOL_VERSION, Asset
from narratoria.kinds.process.custody import custody
from narratoria.kinds.redaction import Redaction
from narratoria.session.draft_assets import accept_asset, add_asset
from narratoria.tools.tool import ToolContext

_SUFFIXES: Final = {"audio/wav": ".wav", "image/jpeg": ".jpg", "text/plain": ".txt", "image/svg+xml": ".svg"}


class File(msgspec.Struct):
    """A file that a result brings."""

    name: str
    kind: str
    media_type: str
    content: bytes
    metadata: dict[str, Any] | None = None


async def keep_files(files: list[File], context: ToolContext, redaction: Redaction) -> None:
    """Put files into the asset store, without known secrets. A refused one is reported, and does not fail the call."""
    draft, call_id = context.session, context.call_id
    files = [_without_secrets(file, redaction) for file in files]
    folder = await asyncio.to_thread(_write, files)
    try:
        taken: dict[str, int] = {}
        for number, file in enumerate(files):
            count = taken[file.name] = taken.get(file.name, 0) + 1
            event = Asset(
                version=PROTOCOL_VERSION,
                asset_id=file.name if count == 1 else f"{file.name}-{count}",
                kind=file.kind,
                media_type=file.media_type,
                path=str(_path(folder, number, file)),
                metadata=file.metadata,
            )
            outcome = await asyncio.to_thread(accept_asset, draft, call_id, event)
            add_asset(draft, call_id, event, outcome)
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


def _without_secrets(file: File, redaction: Redaction) -> File:
    return File(
        redaction.text(file.name),
        file.kind,
        redaction.text(file.media_type),
        redaction.content(file.content),
        redaction.data(file.metadata),
    )


def _write(files: list[File]) -> Path:
    folder = Path(custody().scratch_folder())
    for number, file in enumerate(files):
        path = _path(folder, number, file)
        path.parent.mkdir()
        path.write_bytes(file.content)
    return folder


def _path(folder: Path, number: int, file: File) -> Path:
    suffix = _SUFFIXES.get(file.media_type) or mimetypes.guess_extension(file.media_type) or ""
    stem = (
        "".join(char if char.isalnum() or char in "._-" else "_" for char in file.name)[:80].lstrip(".")
        or "file"
    )
    return folder / str(number) / (stem if stem.endswith(suffix) else stem + suffix)
