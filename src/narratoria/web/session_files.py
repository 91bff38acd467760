"""A session as a file over HTTP: its export, to import again or to read, and its import."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, Final
from urllib.parse import quote

from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from narratoria.store.portable import SUFFIX
from narratoria.store.transcripts import TRANSCRIPTS
from narratoria.web import documents
from narratoria.web.callers import player_of
from narratoria.web.games import Games
from narratoria.web.json_responses import json_response
from narratoria.web.openapi import BINARY
from narratoria.web.request_reading import BadRequest, BodyTooLarge, session_id

MAX_IMPORT: Final = 1024**3
BLOCK: Final = 1 << 20


async def exported(games: Games, request: HttpRequest) -> Response:
    """The session as one file, by `format`: ours, or one to read."""
    kind = request.query_params.get("format", "narratoria")
    if kind != "narratoria" and kind not in TRANSCRIPTS:
        known = ", ".join(["narratoria", *TRANSCRIPTS])
        raise BadRequest(f"format: expected one of {known}, got {kind[:40]!r}")
    ending = TRANSCRIPTS[kind].ending if kind in TRANSCRIPTS else SUFFIX
    title = (await games.card(session_id(request))).title
    name = "".join(letter if letter.isalnum() else "-" for letter in title)[:60].strip("-") or "story"
    headers = {"Content-Disposition": f"attachment; filename*=utf-8''{quote(name)}{ending}"}
    if kind in TRANSCRIPTS:
        content = await games.transcript(session_id(request), kind)
        return Response(content, media_type=TRANSCRIPTS[kind].media_type, headers=headers)
    file = await games.export(session_id(request))
    return StreamingResponse(_blocks(file), media_type=BINARY, headers=headers)


async def imported(games: Games, request: HttpRequest) -> Response:
    """Take in a file of a session; the answer has its id here."""
    with tempfile.TemporaryFile() as file:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > MAX_IMPORT:
                raise BodyTooLarge(f"the file has more than {MAX_IMPORT:,} bytes")
            await asyncio.to_thread(file.write, chunk)
        file.seek(0)
        return json_response(documents.Made(id=await games.import_file(file, owner=player_of(request))), 201)


async def _blocks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block
