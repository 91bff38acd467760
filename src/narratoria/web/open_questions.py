"""Calls of an open game that wait for a person's approval, and the answers."""

from __future__ import annotations

from narratoria.errors import ApprovalNotOpen, ArgumentsInvalid
from narratoria.session.approvals import ApprovalAnswer
from narratoria.web.documents import Answer, Question
from narratoria.web.game_moves import Refused
from narratoria.web.games import NotFound
from narratoria.web.open_game import OpenGame
from narratoria.web.request_reading import BadRequest


def questions(opened: OpenGame) -> list[Question]:
    """Return the open questions, oldest first."""
    return [
        Question(
            id=one.id,
            turn=one.turn,
            call=one.call,
            tool=one.tool.name,
            title=one.tool.title or "",
            description=one.tool.description,
            input=one.input,
            reason=one.reason,
            parameters=dict(one.tool.parameters),
        )
        for one in opened.session.approvals.pending
    ]


def answer(opened: OpenGame, question: str, given: Answer, by: str) -> None:
    """Answer an open question. One that is answered already is refused."""
    if given.decision == "edit":
        if given.input is None:
            raise BadRequest("an edit needs the input to run with; send it as `input`")
        said = ApprovalAnswer.edit(given.input, by=by)
    elif given.decision == "refuse":
        said = ApprovalAnswer.refuse(given.reason.strip(), by=by)
    else:
        said = ApprovalAnswer.approve(by=by)
    try:
        opened.session.approvals.answer(question, said)
    except ArgumentsInvalid as error:
        raise BadRequest(f"the tool would refuse this input: {error}") from None
    except ApprovalNotOpen as error:
        if error.known:
            raise Refused("this was answered already, or its turn has ended") from None
        if opened.game.busy:  # a restarted server has not come to it yet
            raise Refused("the turn is being taken up again; answer in a moment") from None
        raise NotFound(str(error)) from None
