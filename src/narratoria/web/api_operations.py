"""The table of the API's operations. It defines their routes and their documentation."""

from __future__ import annotations

from typing import Final

from narratoria.play.call_again import RepeatedCall
from narratoria.web import documents, openapi
from narratoria.web.memory_api import MEMORY_OPERATIONS
from narratoria.web.model_api import MODEL_OPERATIONS
from narratoria.web.openapi import BINARY, STREAM, Operation
from narratoria.web.player_api import PLAYER_OPERATIONS

OPERATIONS: Final = (
    Operation("GET", "/stories", "list_stories", "Stories to begin", answer=list[documents.StoryCard]),
    Operation("GET", "/sessions", "list_sessions", "Saved sessions", answer=list[documents.SessionCard]),
    Operation("POST", "/sessions", "create_session", "Begin one", documents.NewSession, documents.Made, 201),
    Operation("GET", "/sessions/{id}", "get_session", "One session", answer=documents.SessionCard),
    Operation(
        "PATCH", "/sessions/{id}", "change_session", "Rename, or change settings", documents.SessionChange,
        documents.SessionCard,
    ),
    Operation("DELETE", "/sessions/{id}", "delete_session", "Forget a session", status=204),
    Operation(
        "POST", "/sessions/{id}/prompt", "prompt", "Say what the player does; a turn begins",
        documents.Prompt, documents.TurnNumber, 202,
    ),
    Operation(
        "POST", "/sessions/{id}/continue", "go_on", "Let the story go on without words of the player; a turn begins",
        answer=documents.TurnNumber, status=202,
    ),
    Operation("POST", "/sessions/{id}/cancel", "cancel", "Stop the running turn", status=204),
    Operation(
        "GET", "/sessions/{id}/approvals", "list_approvals", "Calls that wait for a person's approval",
        answer=list[documents.Question],
    ),
    Operation(
        "POST", "/sessions/{id}/approvals/{approval}", "answer_approval",
        "Approve such a call, edit its input or refuse it; a second answer is refused", documents.Answer, status=204,
    ),
    Operation(
        "GET", "/sessions/{id}/undo", "preview_undo", "What an undo would take back, and what it could not",
        answer=documents.UndoPreview, query={"to": "integer", "imported": "boolean"},
    ),
    Operation(
        "POST", "/sessions/{id}/undo", "undo", "Take the newest turn back, or a turn and every later one",
        documents.Undo, documents.Undone,
    ),
    Operation(
        "POST", "/sessions/{id}/redo", "redo", "Bring one back again, or several", documents.Redo,
        documents.Redone,
    ),
    Operation(
        "POST", "/sessions/{id}/retry", "retry", "Take a turn again, with the same words or others",
        documents.Retry, documents.TurnNumber, 202,
    ),
    Operation(
        "POST", "/sessions/{id}/variant", "show_variant", "Let another variant of the newest turn count instead of it",
        documents.Variant, documents.Undone,
    ),
    Operation(
        "PUT", "/sessions/{id}/narration", "edit_narration", "Change the text of a turn, or put the narrator's back",
        documents.NarrationEdit, status=204,
    ),
    Operation(
        "POST", "/sessions/{id}/branch", "branch", "A new session that shares the past up to a turn",
        documents.BranchPoint, documents.Made, 201,
    ),
    Operation(
        "GET", "/sessions/{id}/checkpoints", "list_checkpoints", "Turns that have been given names",
        answer=list[documents.CheckpointCard],
    ),
    Operation(
        "POST", "/sessions/{id}/checkpoints", "make_checkpoint", "Give the newest turn a name to come back to",
        documents.NewCheckpoint, documents.CheckpointCard, 201,
    ),
    Operation(
        "GET", "/sessions/{id}/restore", "preview_restore",
        "What going back to a checkpoint would take back, and what it could not",
        answer=documents.UndoPreview, query={"checkpoint": "string", "imported": "boolean"},
    ),
    Operation(
        "POST", "/sessions/{id}/restore", "restore", "Take back every turn after a checkpoint",
        documents.Restore, documents.Restored,
    ),
    Operation(
        "GET", "/sessions/{id}/events", "events", "Everything that happens, as it happens", answer=STREAM,
        description=openapi.EVENTS,
        query={"after": "integer", "turns": "integer", "once": "integer", "browser": "string"},
    ),
    Operation("GET", "/sessions/{id}/state", "state", "The committed state", answer=documents.StateNow),
    Operation(
        "GET", "/sessions/{id}/assets", "assets", "What its tools have made, in parts, the newest first",
        answer=documents.AssetPage, query={"before": "integer", "most": "integer"},
    ),
    Operation(
        "GET", "/sessions/{id}/find", "find",
        "Turns in which every one of some words stands, in parts, the newest first",
        answer=documents.FoundTurns, query={"words": "string", "before": "integer", "most": "integer"},
        description="Case and accents make no difference; words in quotation marks belong together. Turns that were "
        "taken back do not count. The next part is asked for with the last turn of this one as `before`.",
    ),
    Operation(
        "GET", "/sessions/{id}/tools", "tools", "What its tools are called before a player",
        answer=list[documents.ToolName],
    ),
    Operation(
        "GET", "/sessions/{id}/panel", "panel", "What its story shows beside it, the endings found, its branches",
        answer=documents.PanelView,
    ),
    Operation(
        "GET", "/sessions/{id}/call", "call", "A call taken apart: attempts, request, changes, and a command",
        answer=documents.CallDetails, query={"call": "string", "turn": "integer"},
    ),
    Operation(
        "GET", "/sessions/{id}/call/events", "call_events", "The events of a call, in parts",
        answer=documents.CallEvents,
        query={"call": "string", "turn": "integer", "first": "integer", "most": "integer"},
    ),
    Operation(
        "POST", "/sessions/{id}/call/run", "run_call",
        "Run a call again on the state it had, without touching the story", documents.RunCall, RepeatedCall,
        description="The answer comes when it has ended. Whoever closes the connection ends its process.",
    ),
    Operation("GET", "/sessions/{id}/plans", "plans", "Every plan made", answer=list[documents.PlanEntry]),
    Operation("GET", "/sessions/{id}/settings", "settings", "How it is told", answer=documents.Settings),
    Operation(
        "PUT", "/sessions/{id}/settings", "change_settings", "Change what is named", documents.SettingsChange,
        documents.Settings,
    ),
    Operation(
        "GET", "/sessions/{id}/export", "export_session",
        "The session as one file: to import again, or, by `format`, to read (markdown, html, epub)",
        answer=BINARY, query={"format": "string"},
    ),
    *MEMORY_OPERATIONS,
    *MODEL_OPERATIONS,
    Operation("POST", "/import", "import_session", "Take such a file in", BINARY, documents.Made, 201),
    Operation("GET", "/assets/{hash}", "asset", "A file a tool has made", answer=BINARY),
    *PLAYER_OPERATIONS,
    Operation(
        "POST", "/tokens", "make_token", "A token that lets one more browser in: open any page with ?token=",
        answer=documents.Token, status=201,
    ),
    Operation("POST", "/sign-out", "sign_out", "End the sign-in this request came with", status=204),
)  # fmt: skip
