"""The operations of the API on what a story remembers: look, change, import, take back."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from narratoria.play import game_lore
from narratoria.play.lore_file import MAX_FILE, read_lore_file
from narratoria.web.game_moves import refusing
from narratoria.web.games import Games
from narratoria.web.json_responses import json_response
from narratoria.web.memory_documents import Edited, LoreImported, MemoryEdit, MemoryUndo, MemoryView
from narratoria.web.memory_edits import changes_of, memory_view
from narratoria.web.openapi import BINARY, Operation
from narratoria.web.request_reading import BodyTooLarge, body_of, session_id


class MemoryApi:
    """The operations about memory and lore."""

    games: Games

    async def memory(self, request: HttpRequest) -> Response:
        return json_response(await memory_view((await self.games.open(session_id(request))).game))

    async def change_memory(self, request: HttpRequest) -> Response:
        asked = await body_of(request, MemoryEdit)
        opened = await self.games.idle(session_id(request))
        changes = await changes_of(opened.game, asked)
        with refusing():
            return json_response(Edited(edit=await game_lore.edit(opened.session, changes)))

    async def undo_memory(self, request: HttpRequest) -> Response:
        asked = await body_of(request, MemoryUndo)
        opened = await self.games.idle(session_id(request))
        with refusing():
            made = await game_lore.take_back(opened.journal, asked.edit)
        return json_response(Edited(edit=made))

    async def import_lore(self, request: HttpRequest) -> Response:
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_FILE:
                raise BodyTooLarge(f"the file has more than {MAX_FILE:,} bytes")
        opened = await self.games.idle(session_id(request))
        name = request.query_params.get("name", "")
        found = await asyncio.to_thread(read_lore_file, bytes(content), name, await opened.game.lore())
        with refusing():
            made = await game_lore.edit(opened.session, [game_lore.set_own(None, one) for one in found.kept])
        characters = sum(one.kind == "character" for one in found.kept)
        return json_response(
            LoreImported(
                name=found.name,
                entries=len(found.kept) - characters,
                characters=characters,
                dropped=[*found.dropped],
                edit=made,
            ),
            201,
        )


MEMORY_OPERATIONS: Final = (
    Operation("GET", "/sessions/{id}/memory", "memory", "What it remembers of this game", answer=MemoryView),
    Operation(
        "POST", "/sessions/{id}/memory", "change_memory", "Change the note, or one thing that is remembered",
        MemoryEdit, Edited,
    ),
    Operation(
        "POST", "/sessions/{id}/memory/undo", "undo_memory", "Take such a change back", MemoryUndo, Edited
    ),
    Operation(
        "POST", "/sessions/{id}/memory/import", "import_lore",
        "Take in a lorebook or a character card (SillyTavern, V2 and V3, JSON or PNG)", BINARY, LoreImported, 201,
        query={"name": "string"},
        description="`name` is that of the file. Nothing is taken in of a file that is neither; what is dropped of one "
        "that is, is listed.",
    ),
)  # fmt: skip
