"""What handlers and programs hand over is checked where it enters: a saved session can always be opened again."""

import os
import re

import pytest

from narratoria import PlanDocument, PlannedCall, Session, Tool, ToolRegistry, ToolResult, take_turn
from narratoria.errors import JournalError, ToolFailure, ToolValidationError
from narratoria.events import PROTOCOL_VERSION, Log, Notice, Notification, StatePatch, UiEvent
from narratoria.play.history import checkpoint
from narratoria.run.plan import PlanRetry
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.session.resources.host_folder import PathRefusedError
from narratoria.session.resources.memory_filesystem import MemoryFilesystem
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import SessionUnknown
from narratoria.tools.contract import NotificationEffect, PermissionPrecondition, StateChangeEffect
from narratoria.tools.tool import ToolError

HALF = os.fsdecode(b"caf\xe9.txt")


class Text(str):
    """A text of a library's own class, which JSON encoders do not know."""


class Planned:
    name = "planned"

    async def plan(self, request):
        if request.attempt > 1:
            return PlanDocument(narrative="end")
        call = PlannedCall(tool_id="a", tool_path="t", retry_policy=PlanRetry(max_retries=0))
        return PlanDocument(narrative="n", tools=[call])


def tool_of(act, **contract):
    async def handler(params, *, context):
        return act(context) or ToolResult.ok({})

    return Tool(name="t", description="d", handler=handler, parameters={"type": "object"}, **contract)


async def turn_and_reopen(tmp_path, act):
    """Take two turns in a stored session, open it again, and return its first call's result and the session."""
    store = SqliteStore(tmp_path / "s.db")
    try:
        journal = store.create(Session(assets=store.assets))
        results = []
        for _ in range(2):
            turn = await take_turn(
                journal.session, "go", narrator=Planned(), registry=ToolRegistry([tool_of(act)])
            )
            assert turn.unsaved is None
            results += [one for trace in turn.traces for one in trace.tool_results]
        await journal.close()
        again = store.open(journal.session.id)
        assert again.session.turn_count == 2
        assert again.session.snapshot() == journal.session.snapshot()
        await again.close()
        return results[0], again.session
    finally:
        store.close()


def raising(error):
    raise error


REFUSED = {
    "log level": (lambda c: c.log("x", level="warning"), "level must be one of debug, info, warn, error"),
    "log message": (lambda c: c.log(5), "message must be text, got int"),
    "log field": (lambda c: c.log("x", f=object()), "cannot be written as JSON"),
    "code": (lambda c: ToolResult.error("m", code=404), "code must be text, got int"),
    "raised code": (
        lambda c: raising(ToolFailure(404, "not there")),
        "code must be text, got int; .*not there",
    ),
    "half a code": (lambda c: ToolResult.error("m", code=HALF), "half of a surrogate pair"),
    "message": (lambda c: ToolResult.ok({}, message=None), "message must be text, got NoneType"),
    "failed message": (lambda c: ToolResult.error(5), "message must be text"),
    "recoverable": (lambda c: ToolResult.error("m", recoverable=None), "recoverable must be True or False"),
    "suggestions": (lambda c: ToolResult.error("m", suggestions=[5]), "suggestions must be texts, got int"),
    "details": (lambda c: ToolResult.error("m", details="text"), "details must be a dict, got str"),
    "stderr": (lambda c: ToolResult.error("m", details={"stderr": 5}), "stderr.* must be text"),
    "success": (lambda c: ToolResult("m", None, "yes"), "success must be True or False, got str"),
    "failure": (lambda c: ToolResult("m", None, False, False, "err"), "failure must be a ToolError, got str"),
    "source": (
        lambda c: ToolResult("m", None, False, False, ToolError(code="X", message="m", source="me")),
        "source must be",
    ),
    "patch": (lambda c: c.patch([1]), "the patch must be an object, got list"),
    "no patch": (lambda c: c.patch(None), "the patch must be an object"),
    "ui": (lambda c: c.ui(5), "event must be text, got int"),
    "ui payload": (lambda c: c.ui("x", object()), "cannot be written as JSON"),
    "asset kind": (lambda c: c.asset("/x", kind=None, media_type="a/b"), "kind must be text, got NoneType"),
    "asset id": (lambda c: c.asset("/x", kind="k", media_type="a/b", asset_id=5), "asset_id must be text"),
    "asset path": (lambda c: c.asset(HALF, kind="k", media_type="a/b"), "half of a surrogate pair"),
    "asset metadata": (
        lambda c: c.asset("/x", kind="k", media_type="a/b", metadata=[1]),
        "metadata must be an object",
    ),
    "grant": (lambda c: c.session.grant(5), "a permission must be text, got int"),
    "revoke": (lambda c: c.session.revoke(5), "a permission must be text"),
    "half a grant": (lambda c: c.session.grant(HALF), "half of a surrogate pair"),
    "notify": (lambda c: c.session.notify(5), "event of a notification must be text"),
    "notify payload": (lambda c: c.session.notify("x", object()), "cannot be written as JSON"),
    "state path": (lambda c: c.session.add_state_change(HALF, "set", 1), "half of a surrogate pair"),
    "memory key": (lambda c: c.memory.write("working", HALF, 1), "a key.*half of a surrogate pair"),
    "updated key": (lambda c: c.memory.update("working", HALF, 1), "a key.*half of a surrogate pair"),
    "episodic key": (lambda c: c.memory.write("episodic", HALF, 1), "a key.*half of a surrogate pair"),
    "key in memory": (
        lambda c: c.memory.write("working", "k", {"a": [{HALF: 1}]}),
        r"k\.a\[0\]: a key.*half of a surrogate pair",
    ),
    "emitted": (
        lambda c: c.emit(Log(version=PROTOCOL_VERSION, level="warning", message="m")),
        "emit: Log: Invalid enum value 'warning'",
    ),
    "emitted ui": (lambda c: c.emit(UiEvent(version=PROTOCOL_VERSION, event=HALF)), "emit: UiEvent"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_slip_fails_the_call_and_the_session_opens_again(tmp_path, name):
    act, reason = REFUSED[name]
    result, _ = await turn_and_reopen(tmp_path, act)
    assert result.state == "failed"
    assert result.error_code in ("EXECUTION_FAILED", "INVALID_ARGUMENTS")
    assert re.search(reason, result.error), result.error


MADE_LEGIBLE = {
    "log": lambda c: c.log(HALF),
    "message": lambda c: ToolResult.ok({}, HALF),
    "failed message": lambda c: ToolResult.error(HALF),
    "suggestion": lambda c: ToolResult.error("m", suggestions=[HALF]),
    "exception": lambda c: raising(OSError(HALF)),
    "value": lambda c: ToolResult.ok(HALF),
    "own text": lambda c: ToolResult.ok({}, Text("x")),
    "own log": lambda c: c.log(Text("x")),
    "own code": lambda c: ToolResult.error("m", code=Text("X")),
    "own permission": lambda c: c.session.grant(Text("x")),
}


@pytest.mark.parametrize("name", MADE_LEGIBLE)
async def test_text_for_people_is_made_legible(tmp_path, name):
    result, _ = await turn_and_reopen(tmp_path, MADE_LEGIBLE[name])
    assert HALF not in f"{result.error}{result.suggestions}{result.events}"


async def test_a_log_with_half_a_surrogate_pair_shows_a_replacement_character():
    heard = []
    result = await ToolRegistry([tool_of(lambda c: heard.append(c.log(HALF)))]).execute("t", {})
    assert result.success
    failed = await ToolRegistry([tool_of(lambda c: ToolResult.error(HALF))]).execute("t", {})
    assert failed.message == "caf\ufffd.txt"


async def test_one_suggestion_may_be_given_as_a_text():
    result = await ToolRegistry([tool_of(lambda c: ToolResult.error("m", suggestions="try"))]).execute(
        "t", {}
    )
    assert result.failure.suggestions == ("try",)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: StateChangeEffect(state="a", value=1, description=5),
        lambda: StateChangeEffect(state=5, value=1),
        lambda: StateChangeEffect(state="a", value=1, reversible="no"),
        lambda: NotificationEffect(event=5),
        lambda: PermissionPrecondition(permission="x", description=5),
        lambda: PermissionPrecondition(permission=5),
        lambda: PermissionPrecondition(permission="x", critical="no"),
        lambda: NotificationEffect(event=HALF),
    ],
)
def test_a_declaration_of_a_wrong_type_is_refused(declare):
    with pytest.raises(ToolValidationError, match=r"must be|half of a surrogate"):
        declare()


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        (Notice(level="info", message=HALF), Notice(level="info", message="caf\ufffd.txt")),
        (Notice(level="info", message=5), Notice(level="info", message="5")),
        (Notice(level="loud", message="x"), None),
        (Notification(event="e", payload=object()), Notification(event="e", payload={"notJson": "object"})),
        (Notification(event="e", payload={HALF: [HALF]}), None),
    ],
)
async def test_the_journal_mends_a_record_that_it_could_not_read_back(tmp_path, event, kept):
    store = SqliteStore(tmp_path / "s.db")
    journal = store.create(Session(assets=store.assets))
    journal.session.patch({"a": 1})
    seq = journal.session.record(event)
    journal.session.patch({"b": 2})
    await journal.close()
    again = store.open(journal.session.id)
    assert again.session.snapshot() == {"a": 1, "b": 2}
    records = [one for one in store.read(journal.session.id) if one.seq == seq]
    assert len(records) == 1
    if kept is not None:
        assert records[0].event == kept
    await again.close()
    store.close()


async def test_the_journal_mends_one_event_of_a_run(tmp_path):
    store = SqliteStore(tmp_path / "s.db")
    journal = store.create(Session(assets=store.assets))
    good = StatePatch(version=PROTOCOL_VERSION, patch={"a": 1})
    bad = Log(version=PROTOCOL_VERSION, level="info", message=HALF)
    journal.session.record_emitted("c", [good, bad])
    await journal.close()
    events = [one.event.event for one in store.read(journal.session.id) if hasattr(one.event, "event")]
    assert events[0] == good
    assert events[1].message == "caf\ufffd.txt"
    store.close()


@pytest.mark.parametrize("kind", ["host", "memory"])
def test_a_path_that_no_journal_can_name_is_read_but_not_written(tmp_path, kind):
    files = HostFilesystem(tmp_path) if kind == "host" else MemoryFilesystem()
    for change in (lambda: files.write_text(HALF, "x"), lambda: files.mkdir(f"d/{HALF}")):
        with pytest.raises(PathRefusedError, match="half of a surrogate pair"):
            change()
    if kind == "host":
        (tmp_path / "x\udce9").write_text("here")
        assert files.read_text(files.list()[0]) == "here"


async def test_names_of_sessions_and_checkpoints_are_text_that_can_be_kept(tmp_path):
    for wrong in (lambda: Session(HALF), lambda: Session(permissions=[HALF])):
        with pytest.raises(ValueError, match="half of a surrogate pair"):
            wrong()
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(Session("one"), title=HALF)
    assert store.meta("one").title == "caf\ufffd.txt"
    for look in (store.find, store.meta, store.open):
        with pytest.raises(SessionUnknown):
            look(HALF)
    with pytest.raises(JournalError, match=r"checkpoint.*half of a surrogate pair"):
        await checkpoint(journal, HALF)
    await journal.close()
    store.close()
