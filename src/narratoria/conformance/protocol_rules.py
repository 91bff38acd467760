"""The rules of the tool protocol, tool side: where each is written, how binding it is, and which function judges it.

Rules without a section number are the runtime's own, for every tool it starts.
"""
# The section numbers are 001's.

from __future__ import annotations

from typing import Final

from narratoria.conformance import ending_rules as ending
from narratoria.conformance import output_rules as saying
from narratoria.conformance.verdicts import FAIL, Finding, Rule, Subject, failed, idle, passed
from narratoria.errors import ArgumentsInvalid
from narratoria.events import Asset, Done, Log, StatePatch, ToolErrorEvent, UiEvent
from narratoria.tools import schema

# --- before it runs ------------------------------------------------------------------------------------


def _launch(subject: Subject) -> Finding:
    if subject.refusal is not None:
        return Finding(FAIL, f"{subject.refusal.code}: {subject.refusal}")
    if subject.other_kind is not None:
        return idle(f"it is of the kind {subject.other_kind}, and only executables are started")
    return passed(f"started {len(subject.runs)} times")


def _manifest(subject: Subject) -> Finding:
    if subject.manifest_problem is not None:
        return failed(None, subject.manifest_problem, "see `narratoria schema tool-manifest`")
    if subject.manifest is None:
        return idle(f"there is no {subject.path.stem}.tool.json; it is optional")
    return passed(f"{subject.manifest.name}: {subject.manifest.description}")


def _manifest_examples(subject: Subject) -> Finding:
    manifest = subject.manifest
    if manifest is None or not manifest.examples:
        return idle("the manifest has no examples" if manifest else "there is no manifest that can be read")
    parse = schema.parser_for_schema(manifest.parameters, name=manifest.name)
    for example in manifest.examples:
        try:
            parse(example.input)
        except ArgumentsInvalid as error:
            return failed(None, f"example {example.description!r}: {error}", "make it fit `parameters`")
    return passed(f"{len(manifest.examples)} fit the parameters")


# --- the catalogue -------------------------------------------------------------------------------------

RULES: Final[tuple[Rule, ...]] = (
    Rule("launch", "2.1", "MUST", "the tool can be started", _launch),
    Rule("manifest", "", "MUST", "its manifest is valid", _manifest),
    Rule("manifest-examples", "", "SHOULD", "the manifest's examples fit its parameters", _manifest_examples),
    Rule("ndjson", "2.2", "MUST", "stdout carries JSON objects, one a line", saying.no_fault("ndjson")),
    Rule("stderr", "2.2", "SHOULD", "stderr shows no crash", ending.stderr),
    Rule("utf-8", "2.3", "MUST", "stdout is UTF-8 without a byte order mark", saying.no_fault("utf-8")),
    Rule("newlines", "2.3", "MUST", "lines end in \\n, not CR LF", saying.newlines),
    Rule("whole-lines", "2.3", "MUST", "every line is a complete object", saying.no_fault("whole-lines")),
    Rule("final-newline", "2.3", "SHOULD", "the last line ends in a newline", saying.final_newline),
    Rule("version", "3", "MUST", 'every event has "version": "0"', saying.no_fault("version")),
    Rule("type", "3", "MUST", "every event has one of the six types", saying.no_fault("type")),
    Rule("request-id", "3", "SHOULD", "requestId is the one of the request", saying.request_id),
    Rule("timestamp", "3", "MUST", "timestamp is ISO 8601", saying.timestamp),
    Rule("log-fields", "4.1", "MUST", "a log has level and message", saying.no_fault("log-fields", Log)),
    Rule(
        "patch-is-object",
        "4.2",
        "MUST",
        "a patch is an object",
        saying.no_fault("patch-is-object", StatePatch),
    ),
    Rule(
        "asset-fields", "4.3", "MUST", "an asset has its four fields", saying.no_fault("asset-fields", Asset)
    ),
    Rule("asset-id", "4.3", "MUST", "assetId is unique in the invocation", saying.asset_ids),
    Rule("asset-kind", "4.3", "SHOULD", "kind names a category", saying.each_asset(saying.asset_kind)),
    Rule("asset-media-type", "4.3", "MUST", "mediaType is a MIME type", saying.each_asset(saying.media_type)),
    Rule("asset-file", "4.3", "MUST", "the file is there and readable", saying.each_asset(saying.asset_file)),
    Rule(
        "asset-content",
        "4.3",
        "MUST",
        "the file is what mediaType says",
        saying.each_asset(saying.asset_content),
    ),
    Rule("asset-path", "7", "SHOULD", "the path is absolute", saying.each_asset(saying.asset_path)),
    Rule(
        "ui-event-fields", "4.4", "MUST", "a ui_event has event", saying.no_fault("ui-event-fields", UiEvent)
    ),
    Rule("choices", "4.4", "MUST", "narrative_choice offers texts", saying.choices),
    Rule(
        "error-fields",
        "4.5",
        "MUST",
        "an error has code and message",
        saying.no_fault("error-fields", ToolErrorEvent),
    ),
    Rule(
        "error-then-failure",
        "4.5",
        "SHOULD",
        "after an error comes done with ok false",
        saying.error_then_failure,
    ),
    Rule("done-fields", "4.6", "MUST", "done has ok", saying.no_fault("done-fields", Done)),
    Rule("done-once", "4.6", "MUST", "it ends with exactly one done", ending.done_once),
    Rule("nothing-after-done", "4.6", "SHOULD", "nothing is written after done", ending.nothing_after_done),
    Rule("exit-status", "5.3", "MUST", "it exits with status 0", ending.exit_status),
    Rule("flush", "5.4", "SHOULD", "every event is flushed at once", ending.flushes),
    Rule("ends", "", "MUST", "it ends by itself, in time", ending.ends),
    Rule("ends-promptly", "", "SHOULD", "it exits right after done", ending.ends_promptly),
    Rule("leaves-nothing", "", "MUST", "it leaves no process behind", ending.leaves_nothing),
    Rule("stops-on-term", "", "SHOULD", "it ends when TERM comes", ending.stops_on_term),
    Rule("within-limits", "", "MUST", "its output stays within the caps", ending.within_limits),
    Rule("bears-no-input", "6", "MUST", "it handles an empty stdin", ending.bears("bears-no-input")),
    Rule(
        "bears-unknown-fields",
        "8",
        "MUST",
        "it handles unknown fields",
        ending.bears("bears-unknown-fields", same=True),
    ),
    Rule("bears-non-ascii", "2.3", "MUST", "it handles non-ASCII input", ending.bears("bears-non-ascii")),
    Rule("bears-large-input", "6", "MUST", "it handles 1 MiB of input", ending.bears("bears-large-input")),
    Rule(
        "bears-wrong-types",
        "6",
        "SHOULD",
        "it handles input of the wrong type",
        ending.bears("bears-wrong-types"),
    ),
    Rule("bears-garbage", "6", "SHOULD", "it handles input that is not JSON", ending.bears("bears-garbage")),
)
