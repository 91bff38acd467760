"""Descriptions of every schema and field of the contracts, and examples that a test decodes."""

from __future__ import annotations

from typing import Any, Final

from narratoria.wire_schemas import story_words

PROTOCOL: Final = (
    "A tool is an executable. It reads one JSON request on standard input and writes events on "
    "standard output: "
    "one JSON object a line, UTF-8, ended by \\n, flushed. Every invocation ends with exactly one "
    "`done` and exit "
    "status 0. Standard error is free. Unknown fields are ignored on both sides; an unknown `type` "
    "is an error."
)

TITLES: Final = {
    "Request": "What a tool reads on standard input: one JSON object. A tool may ignore what it "
    "does not know, and "
    "must bear fields of later versions.",
    "Envelope": "What every event has in common. Further fields are ignored.",
    "Event": "One line of a tool's standard output.",
    "LogEvent": "Progress or a diagnostic. Never an error, whatever its level.",
    "StatePatchEvent": "A change to the session's state, merged by RFC 7396: objects are merged, "
    "arrays replaced, "
    "null removes a key. Kept when the call succeeds, dropped when it fails.",
    "AssetEvent": "A file the tool has written before it emits this event.",
    "UiEvent": "A request to the client. What a client does not know it shows as a placeholder.",
    "ErrorEvent": "A structured error. It does not end the invocation: `done` with ok false should follow.",
    "DoneEvent": "The end of the invocation. Nothing may follow it.",
    "PlanDocument": "A plan: which tools to call, with what, in which order. Beyond this schema: "
    "every toolId is used "
    "once, dependencies and $from name a toolId of the plan, there is no cycle, and no key stands "
    "twice in one object.",
    "PlannedCall": "One call of a plan.",
    "Value": 'JSON data, at most 100 levels deep. {"$from": toolId, "path": "a.b" or ["a.b", 0], "default": …} '
    "is replaced by a part of that call's output, "
    '{"$literal": …} by its data as it stands.',
    "PlanRetry": "What happens when a call fails: the n-th retry waits backoffMs × 2^(n-1).",
    "PlanMetadata": "Where the plan stands in a row of plans.",
    "ExecutionResult": "The full trace of a plan that was executed.",
    "CallResult": "What one call came to.",
    "Manifest": "What a tool says of itself, in the file <tool>.tool.json beside it. Times are in "
    "seconds. Beyond this "
    "schema: `parameters` refers to nothing outside itself.",
    "Resources": "What one call needs of the machine it runs on.",
    "ManifestLimits": "Caps on what one invocation may write. Passing one fails the call with OUTPUT_LIMIT.",
    "Example": "An input to try: the conformance kit starts with the first.",
    "Retry": "When a failed call is tried again.",
    **story_words.TITLES,
}

# By field, or by schema and field where the same name means different things.
FIELDS: Final = {
    "version": 'The version of the protocol: the string "0".',
    "type": "The kind it is of.",
    "requestId": "The request's id, echoed. Optional.",
    "timestamp": "When it happened, ISO 8601. Optional.",
    "Request.requestId": "The call's id: the same on every attempt, so that a tool can recognise one.",
    "Request.tool": "The tool's name.",
    "Request.operation": "What to do, where a tool does several things; by default `run`.",
    "Request.input": "The arguments. They fit the manifest's `parameters`.",
    "Request.dependencies": "In a plan: by toolId, the output of each call this one depends on; "
    "null where it failed.",
    "Request.state": "The session's state, when the manifest says `wantsState`.",
    "level": "How much it matters.",
    "LogEvent.message": "One line for people.",
    "fields": "Data beside the message; `progress` from 0 to 1 moves a bar.",
    "patch": "What to merge into the state.",
    "assetId": "A name of its own within the invocation.",
    "kind": "A broad category: image, audio, video, model, text.",
    "mediaType": "The MIME type, for example image/png.",
    "path": "The absolute path of the file, readable by the runtime.",
    "AssetEvent.metadata": "Anything worth knowing: width, height, alt, duration.",
    "event": "The name of the action; every client knows `narrative_choice`.",
    "payload": 'Its parameters; for `narrative_choice`: {"choices": ["…", "…"]}.',
    "errorCode": "A code of the tool's own, for programs: INVALID_INPUT.",
    "errorMessage": "What went wrong, for people.",
    "details": "Structured data about the error.",
    "DoneEvent.ok": "Whether the tool did what it was asked.",
    "summary": "One sentence on what was done.",
    # plans
    "PlanDocument.requestId": "The plan's own id.",
    "PlanDocument.narrative": "What to tell before or while the tools run.",
    "tools": "The calls.",
    "parallel": "Whether calls marked `async` may run at the same time.",
    "disabledSkills": "Skills that failed before: the plan must not use them.",
    "PlanDocument.metadata": "Where this plan stands in a row of plans.",
    "toolId": "A name for this call, once per plan.",
    "toolPath": "The tool: a registered name, or the path of an executable.",
    "PlannedCall.input": 'The arguments. {"$from": "<toolId>", "path": "a.b"} stands for another '
    "call's output.",
    "dependencies": "The toolIds that must end first.",
    "PlannedCall.required": "Whether the plan fails when this call does.",
    "async": "Whether it may run beside others.",
    "PlannedCall.approval": "Whether a person must approve the call before it runs.",
    "retryPolicy": "How often and after how long it is tried again.",
    "maxRetries": "Attempts after the first.",
    "backoffMs": "The first wait, in milliseconds.",
    "generationAttempt": "Which attempt of the narrator this is, from 1.",
    "parentPlanId": "The plan that failed before this one, or null.",
    # results
    "planId": "The plan's requestId.",
    "success": "Whether every required call completed.",
    "ExecutionResult.narrative": "The narrative of the plan.",
    "executionTime": "Milliseconds.",
    "toolResults": "One entry per call of the plan.",
    "failedTools": "The toolIds of the calls that failed.",
    "canReplan": "Whether another plan may be asked for.",
    "CallResult.ok": "Whether the call did what it was asked.",
    "CallResult.state": "How it ended.",
    "output": "Its state patches, merged; empty when it failed.",
    "retryCount": "Attempts after the first.",
    "error": "What went wrong, or null.",
    "CallResult.errorCode": "The code of the failure, or null: MISSING_DONE, TIMEOUT, …, or the tool's own.",
    "errorSource": "Whose code it is: the runtime's, or the tool's own; null where nothing failed.",
    "suggestions": "What could be done about it.",
    "events": "Every event of the call, in order.",
    # manifests
    "name": "The tool's name.",
    "description": "What it does, in one sentence; narrators choose by it.",
    "title": "A name for people.",
    "parameters": "A JSON Schema (2020-12) of the input. What does not fit never reaches the tool.",
    "timeout": "Seconds one attempt may take.",
    "retry": "When a failed call is tried again; null or missing: never.",
    "preconditions": "What must hold before a call. A failed critical one refuses the call.",
    "effects": "What follows after a call that succeeded, in order.",
    "permissions": "Permissions that must be granted.",
    "wantsState": "Whether the request carries the session's state.",
    "readOnly": "Whether it changes nothing, here and outside. Checked: a call that would change the session fails. "
    "Hosts of MCP are told.",
    "approval": "When a person must approve a call before it runs: `always`, when it is `irreversible` (an effect of "
    "it cannot be taken back), or `never`; null: the story or the program decides.",
    "skill": "The skill this tool belongs to.",
    "Manifest.examples": "Inputs to try.",
    "Manifest.operation": "What the request says under `operation`.",
    "Manifest.limits": "Caps on the output, where the runtime's defaults do not suit.",
    "Manifest.resources": "What a machine must have free for a call. With it, the tool runs on a Ray cluster.",
    "cpu": "Cores; a half is 0.5.",
    "gpu": "Graphics processors.",
    "memory": "Bytes of main memory.",
    "custom": "Resources that the nodes of the cluster were given by name.",
    "Manifest.kind": "How the tool is reached: `process`, an executable beside the manifest, or another kind.",
    "Manifest.warm": "Whether calls of a Python script are forks of an interpreter that has imported its modules.",
    "settings": "Settings of that kind, for those that need some.",
    "Manifest.sandbox": "The sandbox it wants to run in: `strict`, `story` or `trusted`, which is none; null: its "
    "place decides. A manifest cannot ask for less than its place does.",
    "Manifest.env": "Variables it needs beside the standard ones: `NAME`, with the value the person has, "
    "or `NAME=VALUE`.",
    "maxLineBytes": "Bytes in one line; by default 2 MiB.",
    "maxEvents": "Events in all; by default 200,000.",
    "maxBytes": "Bytes in all; by default 32 MiB.",
    "maxValues": "Members of objects and elements of arrays in all events; by default 2,000,000.",
    "Example.description": "What the example shows.",
    "Example.input": "The input of the example.",
    "backoff": "How long to wait.",
    "retryableErrors": "The only codes worth another try; null: every code.",
    "nonRetryableErrors": "Codes that no other try can help.",
    "delay": "Seconds to wait.",
    "baseDelay": "Seconds before the first retry.",
    "increment": "Seconds added each time.",
    "maxDelay": "The longest wait, in seconds.",
    "multiplier": "The factor of each further wait.",
    "base": "The strategy that is spread.",
    "jitter": "How far, as a share of the wait.",
    **story_words.FIELDS,
}

EXAMPLES: Final[dict[str, list[Any]]] = {
    "Request": [
        {
            "requestId": "light1",
            "tool": "torch-lighter",
            "operation": "run",
            "input": {"action": "light_torch"},
            "dependencies": {},
        }
    ],
    "LogEvent": [
        {"version": "0", "type": "log", "level": "info", "message": "Half way.", "fields": {"progress": 0.5}},
    ],
    "StatePatchEvent": [
        {"version": "0", "type": "state_patch", "patch": {"inventory": {"torch": {"lit": True}}}}
    ],
    "AssetEvent": [
        {
            "version": "0",
            "type": "asset",
            "assetId": "torch",
            "kind": "image",
            "mediaType": "image/png",
            "path": "/home/ada/torch.png",
            "metadata": {"width": 512, "height": 512, "alt": "A burning torch"},
        }
    ],
    "UiEvent": [
        {
            "version": "0",
            "type": "ui_event",
            "event": "narrative_choice",
            "payload": {"choices": ["Open the door", "Leave"]},
        }
    ],
    "ErrorEvent": [
        {
            "version": "0",
            "type": "error",
            "errorCode": "INVALID_INPUT",
            "errorMessage": '"dice" must look like 2d6+1.',
            "details": {"dice": "two"},
        }
    ],
    "DoneEvent": [
        {"version": "0", "type": "done", "ok": True, "summary": "Torch lit."},
        {"version": "0", "type": "done", "ok": False},
    ],
}

PLAN_EXAMPLE: Final = {
    "requestId": "0b8f8a1e-6d2c-4a50-9f0e-3c1f7a1f9b11",
    "narrative": "You light the torch and look at the door.",
    "tools": [
        {
            "toolId": "light1",
            "toolPath": "tools/torch-lighter",
            "input": {"action": "light_torch"},
            "async": True,
        },
        {
            "toolId": "door1",
            "toolPath": "tools/door-examiner",
            "input": {"target": "mysterious_door"},
            "dependencies": ["light1"],
            "required": False,
            "retryPolicy": {"maxRetries": 1, "backoffMs": 50},
        },
    ],
    "parallel": True,
    "disabledSkills": [],
    "metadata": {"generationAttempt": 1, "parentPlanId": None},
}

MANIFEST_EXAMPLE: Final = {
    "name": "torch-lighter",
    "description": "Lights the torch and shows a picture of it burning.",
    "parameters": {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": ["light_torch"]}},
        "required": ["action"],
        "additionalProperties": False,
    },
    "timeout": 10,
    "retry": {"maxRetries": 2, "backoff": {"type": "fixed", "delay": 0.5}},
    "preconditions": [{"type": "state", "state": "inventory.torch", "description": "there must be a torch"}],
    "effects": [{"type": "state_change", "state": "torches.lit", "change": "increment", "value": 1}],
    "examples": [{"description": "Light the torch", "input": {"action": "light_torch"}}],
}
