"""Answers of the API as JSON, those to requests that fail included."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from narratoria.errors import JournalError, NarratoriaError, SessionBusy, StoryInvalid
from narratoria.play.call_again import NotAgreed, NotRunAgain
from narratoria.store.recorded_call import CallUnknown
from narratoria.store.store import SessionUnknown, TurnUnknown
from narratoria.web.documents import Problem
from narratoria.web.game_moves import NoCheckpoint, Refused
from narratoria.web.games import NotFound
from narratoria.web.request_reading import BadRequest, BodyTooLarge

_STATUS: Final[dict[type[NarratoriaError], tuple[int, str]]] = {
    BadRequest: (400, "bad_request"),
    BodyTooLarge: (413, "too_large"),
    NotFound: (404, "not_found"),
    SessionUnknown: (404, "not_found"),  # deleted while it was asked for
    StoryInvalid: (404, "no_story"),
    NoCheckpoint: (404, "no_checkpoint"),
    CallUnknown: (404, "no_call"),
    TurnUnknown: (404, "no_turn"),
    NotAgreed: (409, "not_agreed"),
    NotRunAgain: (409, "refused"),
    SessionBusy: (409, "busy"),
    Refused: (409, "refused"),
    JournalError: (500, "journal"),
}


def json_response(answer: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, {"Cache-Control": "no-store"}, "application/json")


async def explain(request: HttpRequest, error: Exception) -> Response:
    """Return our errors as documents; the message already says what to do."""
    if isinstance(error, StoryInvalid) and error.problems:  # it is there, with mistakes in it
        return json_response(Problem(error="story_invalid", message=str(error)), 422)
    for kind, (status, name) in _STATUS.items():
        if isinstance(error, kind):
            return json_response(Problem(error=name, message=str(error)), status)
    return json_response(Problem(error="refused", message=str(error)), 422)
