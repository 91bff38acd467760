"""The rules of the tool protocol, tool side, and how each is judged from what was seen.

A section number is 001's. Rules without one are the runtime's own: what it does to every tool it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from narratoria import schema
from narratoria.conformance.lines import Line
from narratoria.conformance.observation import LINGER, Observation
from narratoria.errors import ArgumentsInvalid
from narratoria.events import Asset, Done, Log, StatePatch, ToolErrorEvent, UiEvent
from narratoria.session.assets import is_media_type
from narratoria.tools.launch import LaunchRefused
from narratoria.tools.manifest import Manifest

Verdict: TypeAlias = Literal["pass", "fail", "not exercised"]
PASS: Final = "pass"  # noqa: S105 (a verdict)
FAIL: Final = "fail"
NOT_EXERCISED: Final = "not exercised"
_CRASH_MARKS: Final = (
    "Traceback (most recent call last)",
    "panicked at",
    "Segmentation fault",
    "    at Object.",
)


@dataclass
class Subject:
    """A tool and everything that was seen of it."""

    path: Path
    name: str
    manifest: Manifest | None = None
    manifest_problem: str | None = None
    refusal: LaunchRefused | None = None
    runs: list[Observation] = field(default_factory=list)
    by_rule: dict[str, list[Observation]] = field(default_factory=dict)

    def add(self, rule: str | None, seen: Observation) -> None:
        self.runs.append(seen)
        if rule is not None:
            self.by_rule.setdefault(rule, []).append(seen)

    @property
    def lines(self) -> Iterator[tuple[Observation, Line]]:
        return ((run, line) for run in self.runs for line in run.lines)


@dataclass(frozen=True)
class Finding:
    """What a judge found: a fault with its place and its fix, or why all is well."""

    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Rule:
    name: str
    section: str
    level: Literal["MUST", "SHOULD"]
    says: str
    judge: Callable[[Subject], Finding]

    @property
    def id(self) -> str:
        return f"{self.section} {self.name}".strip()


@dataclass(frozen=True)
class Judgement:
    rule: Rule
    verdict: Verdict
    detail: str


def judge(rule: Rule, subject: Subject) -> Judgement:
    if not subject.runs and rule.name not in ("launch", "manifest", "manifest-examples"):
        return Judgement(rule, NOT_EXERCISED, "the tool could not be started")
    found = rule.judge(subject)
    return Judgement(rule, found.verdict, found.detail)


def _passed(detail: str) -> Finding:
    return Finding(PASS, detail)


def _idle(why: str) -> Finding:
    return Finding(NOT_EXERCISED, why)


def _failed(run: Observation | None, problem: str, fix: str, line: Line | None = None) -> Finding:
    where = f"{run.label}: " if run else ""
    if line is not None:
        return Finding(FAIL, f"{where}line {line.number}: {problem}: {line.excerpt} (fix: {fix})")
    return Finding(FAIL, f"{where}{problem} (fix: {fix})")


# --- before it runs ------------------------------------------------------------------------------------


def _launch(subject: Subject) -> Finding:
    if subject.refusal is not None:
        return Finding(FAIL, f"{subject.refusal.code}: {subject.refusal}")
    return _passed(f"started {len(subject.runs)} times")


def _manifest(subject: Subject) -> Finding:
    if subject.manifest_problem is not None:
        return _failed(None, subject.manifest_problem, "see `narratoria schema tool-manifest`")
    if subject.manifest is None:
        return _idle(f"there is no {subject.path.stem}.tool.json; it is optional")
    return _passed(f"{subject.manifest.name}: {subject.manifest.description}")


def _manifest_examples(subject: Subject) -> Finding:
    manifest = subject.manifest
    if manifest is None or not manifest.examples:
        return _idle("the manifest has no examples" if manifest else "there is no manifest that can be read")
    parse = schema.parser_for_schema(manifest.parameters, name=manifest.name)
    for example in manifest.examples:
        try:
            parse(example.input)
        except ArgumentsInvalid as error:
            return _failed(None, f"example {example.description!r}: {error}", "make it fit `parameters`")
    return _passed(f"{len(manifest.examples)} fit the parameters")


# --- lines ---------------------------------------------------------------------------------------------


def _no_fault(name: str, event: type | None = None) -> Callable[[Subject], Finding]:
    """No line breaks the rule `name`; of a rule on one kind of event, at least one was seen."""

    def judge_lines(subject: Subject) -> Finding:
        for run, line in subject.lines:
            if line.fault == name:
                return _failed(run, line.problem, line.fix, line)
        if event is None:
            count = sum(len(run.lines) for run in subject.runs)
            return _passed("every line") if count else _idle("it wrote nothing on stdout")
        if any(event in run.kinds for run in subject.runs):
            return _passed("every one")
        return _idle("no such event was seen")

    return judge_lines


def _newlines(subject: Subject) -> Finding:
    for run, line in subject.lines:
        if line.crlf:
            return _failed(run, "ends in CR LF", "end lines in \\n alone", line)
    return _no_fault("")(subject)


def _final_newline(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.no_final_newline:
            return _failed(run, "the last line has no newline", "end it in \\n too", run.lines[-1])
    return _no_fault("")(subject)


def _request_id(subject: Subject) -> Finding:
    found = 0
    for run, line in subject.lines:
        if line.event is not None and line.event.request_id is not None and run.request_id:
            found += 1
            if line.event.request_id != run.request_id:
                return _failed(
                    run, f"the request's id was {run.request_id!r}", "echo the id as it came", line
                )
    return _passed("echoed as it came") if found else _idle("no event had a requestId; it is optional")


def _timestamp(subject: Subject) -> Finding:
    found = 0
    for run, line in subject.lines:
        if line.event is not None and line.event.timestamp is not None:
            found += 1
            if not _is_datetime(line.event.timestamp):
                fix = "write it like 2026-01-24T18:00:00Z"
                return _failed(run, f"timestamp {line.event.timestamp[:60]!r} is not ISO 8601", fix, line)
    return _passed("ISO 8601") if found else _idle("no event had a timestamp; it is optional")


def _is_datetime(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) > len("2026-01-24")


# --- assets, choices, errors ---------------------------------------------------------------------------


def _assets(subject: Subject) -> list[tuple[Observation, Line, Asset]]:
    return [(run, line, line.event) for run, line in subject.lines if isinstance(line.event, Asset)]


def _each_asset(problem_of: Callable[[Line, Asset], tuple[str, str] | None]) -> Callable[[Subject], Finding]:
    def judge_assets(subject: Subject) -> Finding:
        found = _assets(subject)
        for run, line, asset in found:
            problem = problem_of(line, asset)
            if problem is not None:
                return _failed(run, *problem, line)
        return _passed("every one") if found else _idle("it announced no asset")

    return judge_assets


def _asset_ids(subject: Subject) -> Finding:
    found = _assets(subject)
    for run in subject.runs:
        seen: set[str] = set()
        for line in run.lines:
            if isinstance(line.event, Asset):
                identity = line.event.asset_id
                if identity in seen or not identity.strip():
                    problem = f"assetId {identity!r} is {'used twice' if identity in seen else 'empty'}"
                    return _failed(run, problem, "give each asset of a run an id of its own", line)
                seen.add(identity)
    return _passed("every one") if found else _idle("it announced no asset")


def _media_type(line: Line, asset: Asset) -> tuple[str, str] | None:
    if is_media_type(asset.media_type):
        return None
    return f"{asset.media_type!r} is not a media type", "use one like image/png or text/plain"


def _asset_file(line: Line, asset: Asset) -> tuple[str, str] | None:
    if line.file_problem is None:
        return None
    return line.file_problem, "write a regular file, close it, then emit the event"


def _asset_path(line: Line, asset: Asset) -> tuple[str, str] | None:
    if Path(asset.path).is_absolute():
        return None
    return f"{asset.path!r} depends on the working directory", "give the absolute path"


def _asset_content(line: Line, asset: Asset) -> tuple[str, str] | None:
    return None if line.content_problem is None else (line.content_problem, "let mediaType match the content")


def _asset_kind(line: Line, asset: Asset) -> tuple[str, str] | None:
    return None if asset.kind.strip() else ("kind is empty", "say what it is: image, audio, video, model")


def _choices(subject: Subject) -> Finding:
    found = 0
    for run, line in subject.lines:
        if isinstance(line.event, UiEvent) and line.event.event == "narrative_choice":
            found += 1
            choices = (line.event.payload or {}).get("choices")
            if not (isinstance(choices, list) and choices and all(isinstance(one, str) for one in choices)):
                fix = 'send {"choices": ["Open the door", "Leave"]}'
                return _failed(run, "narrative_choice needs a list of texts", fix, line)
    return _passed("every one") if found else _idle("it offered no choice")


def _error_then_failure(subject: Subject) -> Finding:
    found = 0
    for run in subject.runs:
        errors = [line for line in run.lines if isinstance(line.event, ToolErrorEvent)]
        last = run.dones[-1].event if run.dones else None
        found += len(errors)
        if errors and isinstance(last, Done) and last.ok:
            return _failed(run, "an error, and then done with ok true", "end with ok false", errors[-1])
        if errors and last is None:
            return _failed(run, "an error, and no done after it", "write done with ok false", errors[-1])
    return _passed("done with ok false followed") if found else _idle("it reported no error")


# --- the end -------------------------------------------------------------------------------------------


def _done_once(subject: Subject) -> Finding:
    run = subject.runs[0]
    if not run.dones:
        fix = 'write {"version":"0","type":"done","ok":true} as the last line, and flush it'
        return _failed(run, "there was no `done` event (MISSING_DONE)", fix)
    if len(run.dones) > 1:
        return _failed(
            run, f"{len(run.dones)} done events", "write exactly one, as the last line", run.dones[1]
        )
    if run.lines[-1] is not run.dones[0]:
        return _failed(run, "comes after done, which must be the end", "write done last", run.lines[-1])
    return _passed("exactly one, at the end")


def _nothing_after_done(subject: Subject) -> Finding:
    found = False
    for run in subject.runs:
        if run.dones:
            found = True
            at = run.lines.index(run.dones[0])
            if at + 1 < len(run.lines):
                fix = "write done last; what follows is ignored"
                return _failed(run, "was written after done", fix, run.lines[at + 1])
    return _passed("done was last") if found else _idle("there was no done")


def _exit_status(subject: Subject) -> Finding:
    run = subject.runs[0]
    if not run.ended_by_itself:
        return _idle("it had to be ended")
    if run.signal is not None:
        return _failed(run, f"the process was ended by signal {run.signal}", f"{_last_words(run)}")
    if run.exit_code:
        fix = f"exit 0 and say what went wrong in `error` and `done`; {_last_words(run)}"
        return _failed(run, f"the process exited with status {run.exit_code} (NON_ZERO_EXIT)", fix)
    return _passed("0")


def _last_words(run: Observation) -> str:
    last = run.stderr.strip().rpartition("\n")[2][:200]
    return f"stderr ends: {last}" if last else "stderr says nothing"


def _ends(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.timed_out:
            after = "after its `done`" if run.dones else "and wrote no `done`"
            problem = f"did not end within {run.duration:.1f} s {after} (TIMEOUT)"
            return _failed(run, problem, "exit when the work is done; close what keeps it alive")
    return _passed(f"the longest run took {max(run.duration for run in subject.runs) * 1000:.0f} ms")


def _ends_promptly(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.lingered:
            fix = "exit right after done: stop threads, timers and servers"
            return _failed(run, f"still ran {LINGER:g} s after its `done`", fix)
    return _passed("it exits with its done") if any(run.dones for run in subject.runs) else _idle("no done")


def _leaves_nothing(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.left_behind:
            problem = f"left running after its end: {', '.join(run.left_behind[:3])}"
            return _failed(run, problem, "wait for your children, or end them; they are killed otherwise")
    return _passed("no process outlived it")


def _stops_on_term(subject: Subject) -> Finding:
    asked = [run for run in subject.runs if run.asked_to_stop]
    for run in asked:
        if run.ignored_term:
            return _failed(run, "ignored TERM and had to be killed", "end when TERM comes; clean up briefly")
    return _passed("it ended when asked") if asked else _idle("it never had to be stopped")


def _within_limits(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.over:
            fix = "log less; write large data to a file and announce it with an `asset` event"
            return _failed(run, f"{run.over} (OUTPUT_LIMIT)", fix)
    return _passed("no cap was passed")


def _flushes(subject: Subject) -> Finding:
    if not all(run.writes_seen for run in subject.runs):
        return _idle("this system does not show single writes")
    for run in subject.runs:
        if run.crowded_write is not None:
            fix = "flush after every event (Python: print(…, flush=True); awk: fflush(); C: fflush(stdout))"
            return _failed(run, "came in one write with the line before it", fix, run.crowded_write)
    return _passed("one write a line") if any(run.lines for run in subject.runs) else _idle("no output")


def _stderr(subject: Subject) -> Finding:
    for run in subject.runs:
        mark = next((mark for mark in _CRASH_MARKS if mark in run.stderr), None)
        if mark is not None:
            return _failed(
                run, f"crashed: {_last_words(run)}", "catch it; emit `error` and done with ok false"
            )
    return _passed("no crash") if any(run.stderr for run in subject.runs) else _idle("stderr was not used")


# --- hostile requests ----------------------------------------------------------------------------------


def _bears(name: str, *, same: bool = False) -> Callable[[Subject], Finding]:
    """The runs of a hostile request ended politely; with `same`, as well as the good one did."""

    def judge_runs(subject: Subject) -> Finding:
        runs = subject.by_rule.get(name)
        if not runs:
            return _idle("not tried, since the first run did not end")
        for run in runs:
            rude = _rudeness(run)
            if rude is not None:
                fix = "answer with `error` and done with ok false, exit 0"
                return _failed(run, rude, "ignore fields you do not know" if same else fix)
            if same and _said_ok(subject.runs[0]) and not _said_ok(run):
                return _failed(
                    run, "it failed, though it succeeds without them", "ignore fields you do not know"
                )
        return _passed("it succeeded" if all(map(_said_ok, runs)) else "it refused politely")

    return judge_runs


def _rudeness(run: Observation) -> str | None:
    """How a run ended badly, or None."""
    if run.over or run.timed_out:
        return run.over or f"did not end within {run.duration:.1f} s"
    if run.faults:
        fault = run.faults[0]
        return f"line {fault.number}: {fault.problem}: {fault.excerpt}"
    if run.signal is not None and run.ended_by_itself:
        return f"was ended by signal {run.signal}"
    if run.exit_code and run.ended_by_itself:
        return f"exited with status {run.exit_code}; {_last_words(run)}"
    return None if run.dones else f"ended without a `done`; {_last_words(run)}"


def _said_ok(run: Observation) -> bool:
    return any(isinstance(line.event, Done) and line.event.ok for line in run.dones[:1])


# --- the catalogue -------------------------------------------------------------------------------------

RULES: Final[tuple[Rule, ...]] = (
    Rule("launch", "2.1", "MUST", "the tool can be started", _launch),
    Rule("manifest", "", "MUST", "its manifest is valid", _manifest),
    Rule("manifest-examples", "", "SHOULD", "the manifest's examples fit its parameters", _manifest_examples),
    Rule("ndjson", "2.2", "MUST", "stdout carries JSON objects, one a line", _no_fault("ndjson")),
    Rule("stderr", "2.2", "SHOULD", "stderr shows no crash", _stderr),
    Rule("utf-8", "2.3", "MUST", "stdout is UTF-8 without a byte order mark", _no_fault("utf-8")),
    Rule("newlines", "2.3", "MUST", "lines end in \\n, not CR LF", _newlines),
    Rule("whole-lines", "2.3", "MUST", "every line is a complete object", _no_fault("whole-lines")),
    Rule("final-newline", "2.3", "SHOULD", "the last line ends in a newline", _final_newline),
    Rule("version", "3", "MUST", 'every event has "version": "0"', _no_fault("version")),
    Rule("type", "3", "MUST", "every event has one of the six types", _no_fault("type")),
    Rule("request-id", "3", "SHOULD", "requestId is the one of the request", _request_id),
    Rule("timestamp", "3", "MUST", "timestamp is ISO 8601", _timestamp),
    Rule("log-fields", "4.1", "MUST", "a log has level and message", _no_fault("log-fields", Log)),
    Rule("patch-is-object", "4.2", "MUST", "a patch is an object", _no_fault("patch-is-object", StatePatch)),
    Rule("asset-fields", "4.3", "MUST", "an asset has its four fields", _no_fault("asset-fields", Asset)),
    Rule("asset-id", "4.3", "MUST", "assetId is unique in the invocation", _asset_ids),
    Rule("asset-kind", "4.3", "SHOULD", "kind names a category", _each_asset(_asset_kind)),
    Rule("asset-media-type", "4.3", "MUST", "mediaType is a MIME type", _each_asset(_media_type)),
    Rule("asset-file", "4.3", "MUST", "the file is there and readable", _each_asset(_asset_file)),
    Rule("asset-content", "4.3", "SHOULD", "the file is what mediaType says", _each_asset(_asset_content)),
    Rule("asset-path", "7", "SHOULD", "the path is absolute", _each_asset(_asset_path)),
    Rule("ui-event-fields", "4.4", "MUST", "a ui_event has event", _no_fault("ui-event-fields", UiEvent)),
    Rule("choices", "4.4", "MUST", "narrative_choice offers texts", _choices),
    Rule(
        "error-fields",
        "4.5",
        "MUST",
        "an error has code and message",
        _no_fault("error-fields", ToolErrorEvent),
    ),
    Rule(
        "error-then-failure", "4.5", "SHOULD", "after an error comes done with ok false", _error_then_failure
    ),
    Rule("done-fields", "4.6", "MUST", "done has ok", _no_fault("done-fields", Done)),
    Rule("done-once", "4.6", "MUST", "it ends with exactly one done", _done_once),
    Rule("nothing-after-done", "4.6", "SHOULD", "nothing is written after done", _nothing_after_done),
    Rule("exit-status", "5.3", "MUST", "it exits with status 0", _exit_status),
    Rule("flush", "5.4", "SHOULD", "every event is flushed at once", _flushes),
    Rule("ends", "", "MUST", "it ends by itself, in time", _ends),
    Rule("ends-promptly", "", "SHOULD", "it exits right after done", _ends_promptly),
    Rule("leaves-nothing", "", "MUST", "it leaves no process behind", _leaves_nothing),
    Rule("stops-on-term", "", "SHOULD", "it ends when TERM comes", _stops_on_term),
    Rule("within-limits", "", "MUST", "its output stays within the caps", _within_limits),
    Rule("bears-no-input", "6", "MUST", "it bears an empty stdin", _bears("bears-no-input")),
    Rule(
        "bears-unknown-fields",
        "8",
        "MUST",
        "it bears unknown fields",
        _bears("bears-unknown-fields", same=True),
    ),
    Rule("bears-non-ascii", "2.3", "MUST", "it bears non-ASCII input", _bears("bears-non-ascii")),
    Rule("bears-large-input", "6", "MUST", "it bears 1 MiB of input", _bears("bears-large-input")),
    Rule("bears-wrong-types", "6", "SHOULD", "it bears input of the wrong type", _bears("bears-wrong-types")),
    Rule("bears-garbage", "6", "SHOULD", "it bears what is not JSON", _bears("bears-garbage")),
)
