"""Answers of the API as JSON, those to requests that fail included."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from narratoria.errors import JournalError, NarratoriaError, SessionBusy, StoryInvalid
from narratoria.kinds.shares.shares import Overload, TurnRefused
from narratoria.play.call_again import NotAgreed, NotRunAgain
from narratoria.store.recorded_call import CallUnknown
from narratoria.store.store import SessionUnknown, TurnUnknown
from narratoria.store.writer import ConnectionLost
from narratoria.web.callers import Forbidden
from narratoria.web.catalogues import in_words_of
from narratoria.web.documents import Problem, Settings
from narratoria.web.game_moves import NoCheckpoint, Refused
from narratoria.web.games import NotFound, Unavailable
from narratoria.web.player_limits import TooMuch, UploadTooLarge
from narratoria.web.request_reading import BadRequest, BodyTooLarge

RETRY_SECONDS: Final = "2"
_STATUS: Final[dict[type[NarratoriaError], tuple[int, str]]] = {
    BadRequest: (400, "bad_request"),
    BodyTooLarge: (413, "too_large"),
    UploadTooLarge: (413, "too_large"),
    Forbidden: (403, "forbidden"),
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
    ConnectionLost: (503, "database"),
    JournalError: (500, "journal"),
}


def json_response(answer: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, {"Cache-Control": "no-store"}, "application/json")


def settings_response(request: HttpRequest, settings: Settings) -> Response:
    """Return the settings of a session, with what narrators lack in the language of the page."""
    missing = {name: in_words_of(request.headers, what) for name, what in settings.missing.items()}
    return json_response(msgspec.structs.replace(settings, missing=missing))


def _later(problem: Problem, status: int = 503, seconds: str = RETRY_SECONDS) -> Response:
    answer = json_response(problem, status)
    answer.headers["Retry-After"] = seconds
    return answer


async def explain(request: HttpRequest, error: Exception) -> Response:
    """Return our errors as documents; the message already says what to do."""
    message = in_words_of(request.headers, str(error))
    if isinstance(error, StoryInvalid) and error.problems:  # it is there, with mistakes in it
        return json_response(Problem(error="story_invalid", message=message), 422)
    if isinstance(error, TooMuch):
        answer = json_response(Problem(error="too_many", message=message), 429)
        answer.headers["Retry-After"] = str(error.seconds)
        return answer
    if isinstance(error, Unavailable):
        return _later(Problem(error=error.code, message=message))
    if isinstance(error, TurnRefused):
        status = 503 if isinstance(error, Overload) else 429
        return _later(Problem(error=error.code, message=message), status, str(math.ceil(error.seconds)))
    for kind, (status, name) in _STATUS.items():
        if isinstance(error, kind):
            problem = Problem(error=name, message=message)
            return _later(problem) if status == 503 else json_response(problem, status)
    return json_response(Problem(error="refused", message=message), 422)
