"""The rules of the tool protocol, tool side: where each is written, how binding it is, and which function judges it.

Rules without a section number are the runtime's own, for every tool it starts.
"""
# The section numbers are 001's.

from __future__ import annotations

from typing import Final

from narratoria.conformance import ending_rules, output_rules
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
    # 000 §2.1
    Rule("launch", "MUST", "the tool can be started", _launch),
    # of this runtime, beyond the specification
    Rule("manifest", "MUST", "its manifest is valid", _manifest),
    Rule("manifest-examples", "SHOULD", "the manifest's examples fit its parameters", _manifest_examples),
    # 000 §2.2
    Rule("ndjson", "MUST", "stdout carries JSON objects, one a line", output_rules.no_fault("ndjson")),
    Rule("stderr", "SHOULD", "stderr shows no crash", ending_rules.stderr),
    # 000 §2.3
    Rule("utf-8", "MUST", "stdout is UTF-8 without a byte order mark", output_rules.no_fault("utf-8")),
    Rule("newlines", "MUST", "lines end in \\n, not CR LF", output_rules.newlines),
    Rule("whole-lines", "MUST", "every line is a complete object", output_rules.no_fault("whole-lines")),
    Rule("final-newline", "SHOULD", "the last line ends in a newline", output_rules.final_newline),
    # 000 §3
    Rule("version", "MUST", 'every event has "version": "0"', output_rules.no_fault("version")),
    Rule("type", "MUST", "every event has one of the six types", output_rules.no_fault("type")),
    Rule("request-id", "SHOULD", "requestId is the one of the request", output_rules.request_id),
    Rule("timestamp", "MUST", "timestamp is ISO 8601", output_rules.timestamp),
    # 000 §4.1
    Rule("log-fields", "MUST", "a log has level and message", output_rules.no_fault("log-fields", Log)),
    # 000 §4.2
    Rule(
        "patch-is-object",
        "MUST",
        "a patch is an object",
        output_rules.no_fault("patch-is-object", StatePatch),
    ),
    # 000 §4.3
    Rule(
        "asset-fields", "MUST", "an asset has its four fields", output_rules.no_fault("asset-fields", Asset)
    ),
    Rule("asset-id", "MUST", "assetId is unique in the invocation", output_rules.asset_ids),
    Rule("asset-kind", "SHOULD", "kind names a category", output_rules.each_asset(output_rules.asset_kind)),
    Rule(
        "asset-media-type",
        "MUST",
        "mediaType is a MIME type",
        output_rules.each_asset(output_rules.media_type),
    ),
    Rule(
        "asset-file",
        "MUST",
        "the file is there and readable",
        output_rules.each_asset(output_rules.asset_file),
    ),
    Rule(
        "asset-content",
        "MUST",
        "the file is what mediaType says",
        output_rules.each_asset(output_rules.asset_content),
    ),
    # 000 §7
    Rule("asset-path", "SHOULD", "the path is absolute", output_rules.each_asset(output_rules.asset_path)),
    # 000 §4.4
    Rule(
        "ui-event-fields", "MUST", "a ui_event has event", output_rules.no_fault("ui-event-fields", UiEvent)
    ),
    Rule("choices", "MUST", "narrative_choice offers texts", output_rules.choices),
    # 000 §4.5
    Rule(
        "error-fields",
        "MUST",
        "an error has code and message",
        output_rules.no_fault("error-fields", ToolErrorEvent),
    ),
    Rule(
        "error-then-failure",
        "SHOULD",
        "after an error comes done with ok false",
        output_rules.error_then_failure,
    ),
    # 000 §4.6
    Rule("done-fields", "MUST", "done has ok", output_rules.no_fault("done-fields", Done)),
    Rule("done-once", "MUST", "it ends with exactly one done", ending_rules.done_once),
    Rule("nothing-after-done", "SHOULD", "nothing is written after done", ending_rules.nothing_after_done),
    # 000 §5.3
    Rule("exit-status", "MUST", "it exits with status 0", ending_rules.exit_status),
    # 000 §5.4
    Rule("flush", "SHOULD", "every event is flushed at once", ending_rules.flushes),
    # of this runtime, beyond the specification
    Rule("ends", "MUST", "it ends by itself, in time", ending_rules.ends),
    Rule("ends-promptly", "SHOULD", "it exits right after done", ending_rules.ends_promptly),
    Rule("leaves-nothing", "MUST", "it leaves no process behind", ending_rules.leaves_nothing),
    Rule("stops-on-term", "SHOULD", "it ends when TERM comes", ending_rules.stops_on_term),
    Rule("within-limits", "MUST", "its output stays within the caps", ending_rules.within_limits),
    # 000 §6
    Rule("bears-no-input", "MUST", "it handles an empty stdin", ending_rules.bears("bears-no-input")),
    # 000 §8
    Rule(
        "bears-unknown-fields",
        "MUST",
        "it handles unknown fields",
        ending_rules.bears("bears-unknown-fields", same=True),
    ),
    # 000 §2.3
    Rule("bears-non-ascii", "MUST", "it handles non-ASCII input", ending_rules.bears("bears-non-ascii")),
    # 000 §6
    Rule("bears-large-input", "MUST", "it handles 1 MiB of input", ending_rules.bears("bears-large-input")),
    Rule(
        "bears-wrong-types",
        "SHOULD",
        "it handles input of the wrong type",
        ending_rules.bears("bears-wrong-types"),
    ),
    Rule("bears-garbage", "SHOULD", "it handles input that is not JSON", ending_rules.bears("bears-garbage")),
)
"""The rules that a tool is checked by, in the order of the report."""
