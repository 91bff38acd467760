"""All events, as one family of tagged structs.

Six events belong to the tool protocol (docs/protocol.md): a tool writes them on its standard output, one JSON object
a line. The others are the runtime's own. The session's journal records both kinds, so that a client, a replay and a
second viewer read one stream. The tag is the field `type`; names are camelCase on the wire. Unknown fields are
ignored; a missing or wrong known field is an error.
"""

from __future__ import annotations

from typing import Final

import msgspec

from narratoria.events.call_events import (
    ApprovalGiven,
    ApprovalRequested,
    AssetDenied,
    AssetStored,
    CallEmitted,
    CallFinished,
    CallRetrying,
    CallStarted,
    Committed,
    RuntimeEvent,
)
from narratoria.events.changes import (
    Change,
    EffectApplied,
    MemoryChange,
    PatchChange,
    PermissionChange,
    ResourceChange,
    SliceChange,
)
from narratoria.events.runtime_events import (
    AnyRuntimeEvent,
    Checkpoint,
    Choices,
    EffectTakenBack,
    MemoriesRecalled,
    ModelAsked,
    Narration,
    NarrationDelta,
    NarrationEdited,
    NarratorChosen,
    Notice,
    Notification,
    PlanFinished,
    PlanMade,
    PlanRefused,
    RecalledMemory,
    RecordsLost,
    SessionStarted,
    SkillHealth,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
    UndoCancelled,
    UndoStarted,
)
from narratoria.events.tool_events import (
    PROTOCOL_VERSION,
    TOOL_EVENT_TYPES,
    Asset,
    Done,
    JsonObject,
    Log,
    LogLevel,
    ProtocolEvent,
    StatePatch,
    ToolErrorEvent,
    ToolEvent,
    UiEvent,
    decode_tool_event,
)

encode: Final = msgspec.json.Encoder().encode

__all__ = [
    "PROTOCOL_VERSION",
    "TOOL_EVENT_TYPES",
    "AnyRuntimeEvent",
    "ApprovalGiven",
    "ApprovalRequested",
    "Asset",
    "AssetDenied",
    "AssetStored",
    "CallEmitted",
    "CallFinished",
    "CallRetrying",
    "CallStarted",
    "Change",
    "Checkpoint",
    "Choices",
    "Committed",
    "Done",
    "EffectApplied",
    "EffectTakenBack",
    "JsonObject",
    "Log",
    "LogLevel",
    "MemoriesRecalled",
    "MemoryChange",
    "ModelAsked",
    "Narration",
    "NarrationDelta",
    "NarrationEdited",
    "NarratorChosen",
    "Notice",
    "Notification",
    "PatchChange",
    "PermissionChange",
    "PlanFinished",
    "PlanMade",
    "PlanRefused",
    "ProtocolEvent",
    "RecalledMemory",
    "RecordsLost",
    "ResourceChange",
    "RuntimeEvent",
    "SessionStarted",
    "SkillHealth",
    "SliceChange",
    "StatePatch",
    "ToolErrorEvent",
    "ToolEvent",
    "TurnCommitted",
    "TurnRedone",
    "TurnStarted",
    "TurnUndone",
    "UiEvent",
    "UndoCancelled",
    "UndoStarted",
    "decode_tool_event",
    "encode",
]
