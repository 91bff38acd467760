"""The operations of the API. The table in `api_operations.py` gives each of them its route."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from narratoria.errors import JournalError
from narratoria.web import documents, open_questions, openapi, session_files
from narratoria.web import game_moves as moves
from narratoria.web.access import GRANT, SIGN_IN, AccessPolicy, settled, signed_out
from narratoria.web.api_operations import OPERATIONS
from narratoria.web.asset_pages import asset_page
from narratoria.web.asset_responses import asset_response
from narratoria.web.callers import check_role, player_of, sees_only_own
from narratoria.web.feed import Feed, Viewer
from narratoria.web.games import Games, NotFound
from narratoria.web.json_responses import json_response, settings_response
from narratoria.web.memory_api import MemoryApi
from narratoria.web.model_api import ModelApi
from narratoria.web.openapi import STREAM
from narratoria.web.panel_view import panel_view
from narratoria.web.plan_entries import plan_entries
from narratoria.web.player_api import PlayerApi
from narratoria.web.request_reading import (
    BadRequest,
    body_of,
    flag,
    named_call,
    number,
    one_line,
    search_words,
    session_id,
    unless_left,
)
from narratoria.web.sign_ins import TOKEN_SECONDS
from narratoria.web.stream_limit import MAX_STREAMS, Windows

logger = logging.getLogger("narratoria")


class Api(ModelApi, MemoryApi, PlayerApi):
    """The operations, over the games of this server."""

    def __init__(self, games: Games, sign_ins: AccessPolicy, cookie: str, streams: int = MAX_STREAMS) -> None:
        super().__init__(games)
        self._sign_ins = sign_ins
        self._cookie = cookie
        self._windows = Windows(streams)

    # --- library -------------------------------------------------------------------------------------------

    async def list_stories(self, request: HttpRequest) -> Response:
        return json_response(await self.games.shelf.cards())

    async def list_sessions(self, request: HttpRequest) -> Response:
        return json_response(await self.games.sessions(sees_only_own(request)))

    async def create_session(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.NewSession)
        made = await self.games.create(asked.story, owner=player_of(request))
        return json_response(documents.Made(id=made), 201)

    async def get_session(self, request: HttpRequest) -> Response:
        return json_response(await self.games.card(session_id(request)))

    async def change_session(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.SessionChange)
        if asked.title is not None:
            await self.games.rename(session_id(request), one_line("a title", asked.title))
        if asked.settings is not None:
            _check_settings(request, asked.settings)
            await self.games.change_settings(session_id(request), asked.settings)
        return json_response(await self.games.card(session_id(request)))

    async def delete_session(self, request: HttpRequest) -> Response:
        await self.games.delete(session_id(request))
        return Response(status_code=204)

    async def export_session(self, request: HttpRequest) -> Response:
        return await session_files.exported(self.games, request)

    async def import_session(self, request: HttpRequest) -> Response:
        return await session_files.imported(self.games, request)

    # --- playing -------------------------------------------------------------------------------------------

    async def prompt(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Prompt)
        if not asked.prompt.strip():
            raise BadRequest("the prompt is empty; say what you do")
        turn = await self.games.prompt(session_id(request), asked.prompt, asked.origin, player_of(request))
        return json_response(documents.TurnNumber(turn=turn), 202)

    async def go_on(self, request: HttpRequest) -> Response:
        turn = await self.games.go_on(session_id(request), player_of(request))
        return json_response(documents.TurnNumber(turn=turn), 202)

    async def cancel(self, request: HttpRequest) -> Response:
        await self.games.cancel(session_id(request))
        return Response(status_code=204)

    async def list_approvals(self, request: HttpRequest) -> Response:
        return json_response(open_questions.questions(await self.games.open(session_id(request))))

    async def answer_approval(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Answer)
        opened = await self.games.open(session_id(request))
        by = "api" if "authorization" in request.headers else "page"
        open_questions.answer(opened, request.path_params["approval"], asked, by)
        return Response(status_code=204)

    async def preview_undo(self, request: HttpRequest) -> Response:
        given = request.query_params.get("to")
        turn = None if given is None else number("to", given)
        opened = await self.games.idle(session_id(request))
        return json_response(await moves.preview_undo(opened, turn, imported=flag(request, "imported")))

    async def undo(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Undo, documents.Undo())
        opened = await self.games.idle(session_id(request))
        return json_response(
            moves.told(await moves.undo(opened, asked.to, imported=asked.imported), opened.game.registry)
        )

    async def redo(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Redo, documents.Redo())
        turns = await moves.redo(await self.games.idle(session_id(request)), asked.to)
        return json_response(documents.Redone(turn=turns[-1], turns=turns))

    async def retry(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Retry)
        turn = await self.games.retry(session_id(request), asked.prompt, asked.to, player_of(request))
        return json_response(documents.TurnNumber(turn=turn), 202)

    async def show_variant(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Variant)
        opened = await self.games.idle(session_id(request))
        return json_response(await moves.show_variant(opened, asked.turn, imported=asked.imported))

    async def edit_narration(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.NarrationEdit)
        await moves.edit_narration(await self.games.idle(session_id(request)), asked.turn, asked.text)
        return Response(status_code=204)

    async def branch(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.BranchPoint)
        if asked.turn is not None and asked.before is not None:
            raise BadRequest("name the last turn to share, or the first not to, but not both")
        made = await self.games.branch(
            session_id(request), asked.turn, asked.before, owner=player_of(request)
        )
        return json_response(documents.Made(id=made), 201)

    async def list_checkpoints(self, request: HttpRequest) -> Response:
        return json_response(moves.checkpoints(await self.games.open(session_id(request))))

    async def make_checkpoint(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.NewCheckpoint)
        name = one_line("the name of a checkpoint", asked.name)
        return json_response(await moves.mark(await self.games.idle(session_id(request)), name), 201)

    async def preview_restore(self, request: HttpRequest) -> Response:
        name = request.query_params.get("checkpoint")
        if name is None:
            raise BadRequest("name the checkpoint, as in ?checkpoint=before%20the%20door")
        opened = await self.games.idle(session_id(request))
        return json_response(await moves.preview_restore(opened, name, imported=flag(request, "imported")))

    async def restore(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.Restore)
        opened = await self.games.idle(session_id(request))
        return json_response(await moves.restore(opened, asked.checkpoint, imported=asked.imported))

    # --- looking -------------------------------------------------------------------------------------------

    async def state(self, request: HttpRequest) -> Response:
        session = (await self.games.open(session_id(request))).session
        return json_response(documents.StateNow(seq=session.seq, state=session.snapshot()))

    async def assets(self, request: HttpRequest) -> Response:
        given = request.query_params.get("before")
        before = None if given is None else number("before", given)
        most = max(0, number("most", request.query_params.get("most", "200")))
        opened = await self.games.open(session_id(request))
        await opened.journal.flush()
        return json_response(
            await asyncio.to_thread(asset_page, self.games.store, opened.session.id, before, most)
        )

    async def plans(self, request: HttpRequest) -> Response:
        feed = (await self.games.open(session_id(request))).feed
        return json_response(await plan_entries(feed))

    async def find(self, request: HttpRequest) -> Response:
        words = search_words(request.query_params.get("words", ""))
        given = request.query_params.get("before")
        before = None if given is None else number("before", given)
        most = number("most", request.query_params.get("most", "50"))
        opened = await self.games.open(session_id(request))
        found = self.games.search.find(opened, words, before, most)
        return json_response(await unless_left(request, found))

    async def tools(self, request: HttpRequest) -> Response:
        return json_response(await self.games.tools(session_id(request)))

    async def panel(self, request: HttpRequest) -> Response:
        return json_response(await panel_view(self.games, session_id(request), sees_only_own(request)))

    async def call(self, request: HttpRequest) -> Response:
        call, turn = named_call(request)
        opened = await self.games.open(session_id(request))
        return json_response(await self.games.calls.details(opened, call, turn))

    async def call_events(self, request: HttpRequest) -> Response:
        call, turn = named_call(request)
        first = number("first", request.query_params.get("first", "0"))
        most = number("most", request.query_params.get("most", "200"))
        opened = await self.games.open(session_id(request))
        return json_response(await self.games.calls.events(opened, call, turn, first, most))

    async def run_call(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.RunCall)
        opened = await self.games.open(session_id(request))
        running = self.games.calls.run(opened, asked.call, asked.turn, asked.input, asked.agreed)
        return json_response(await unless_left(request, running))

    async def events(self, request: HttpRequest) -> Response:
        feed = await self.games.feed(session_id(request))
        seen = request.headers.get("last-event-id") or request.query_params.get("after")
        after = None if seen is None else number("after", seen)
        given = request.query_params.get("turns")
        turns = None if given is None else max(1, number("turns", given))
        holders = [request.scope[SIGN_IN], *([request.scope[GRANT]] if GRANT in request.scope else [])]
        return _EventStream(self._watch(feed, after, turns, request.query_params, holders))

    async def _watch(
        self,
        feed: Feed,
        after: int | None,
        turns: int | None,
        asked: Mapping[str, str],
        holders: Sequence[_Ending],
    ) -> AsyncIterator[bytes]:
        viewer = Viewer(feed.seq)
        for one in holders:  # signed out, here or in another window; or the session is shared no more
            one.on_end.add(viewer.leave)
        try:
            with self._windows.opened(asked.get("browser")) as lasting:
                once = "once" in asked or not lasting
                async for chunk in feed.follow(after, turns, once=once, viewer=viewer):
                    if any(one.ended for one in holders):
                        return
                    yield chunk
        except JournalError as error:  # the viewer comes again
            logger.warning("a viewer's stream ends: %s", error)
        finally:
            for one in holders:
                one.on_end.discard(viewer.leave)

    async def asset(self, request: HttpRequest) -> Response:
        try:
            path = await asyncio.to_thread(self.games.store.assets.path_of, request.path_params["hash"])
        except KeyError:
            raise NotFound("no asset has this hash") from None
        return asset_response(path)

    async def settings(self, request: HttpRequest) -> Response:
        return settings_response(request, await self.games.settings(session_id(request)))

    async def change_settings(self, request: HttpRequest) -> Response:
        asked = await body_of(request, documents.SettingsChange)
        _check_settings(request, asked)
        return settings_response(request, await self.games.change_settings(session_id(request), asked))

    # --- who is here ---------------------------------------------------------------------------------------

    async def make_token(self, request: HttpRequest) -> Response:
        token = await settled(self._sign_ins.new_token(of=request.scope[SIGN_IN]))
        return json_response(documents.Token(token=token, seconds=int(TOKEN_SECONDS)), 201)

    async def sign_out(self, request: HttpRequest) -> Response:
        await settled(self._sign_ins.end(request.scope[SIGN_IN]))
        return Response(status_code=204, headers={"Set-Cookie": signed_out(self._cookie)})

    # --- itself --------------------------------------------------------------------------------------------

    async def describe(self, request: HttpRequest) -> Response:
        return JSONResponse(openapi.document(OPERATIONS, self._cookie))

    async def reference(self, request: HttpRequest) -> Response:
        return HTMLResponse(openapi.reference_page(OPERATIONS))


class _Ending(Protocol):
    """The end of a stream: a sign-in, or a right to a session."""

    ended: bool
    on_end: set[Callable[[], None]]


def _check_settings(request: HttpRequest, asked: documents.SettingsChange) -> None:
    """Refuse a player what reaches past the session: what tools may do, and the settings of skills."""
    if asked.permissions or asked.skill_settings:
        check_role(request, "author")


class _EventStream(StreamingResponse):
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        super().__init__(
            chunks, media_type=STREAM, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
