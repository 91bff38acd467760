"""Rules on a tool's output: its lines, and the events on them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from narratoria.conformance.observation import Observation
from narratoria.conformance.output_lines import Line
from narratoria.conformance.verdicts import Finding, Subject, failed, idle, passed
from narratoria.events import Asset, Done, ToolErrorEvent, UiEvent
from narratoria.session.media import is_media_type

# --- lines ---------------------------------------------------------------------------------------------


def no_fault(name: str, event: type | None = None) -> Callable[[Subject], Finding]:
    """Judge that no line breaks the rule `name`; a rule on one kind of event needs at least one such event."""

    def judge_lines(subject: Subject) -> Finding:
        for run, line in subject.lines:
            if line.fault == name:
                return failed(run, line.problem, line.fix, line)
        if event is None:
            count = sum(len(run.lines) for run in subject.runs)
            return passed("every line") if count else idle("it wrote nothing on stdout")
        if any(event in run.kinds for run in subject.runs):
            return passed("every one")
        return idle("no such event was seen")

    return judge_lines


def newlines(subject: Subject) -> Finding:
    for run, line in subject.lines:
        if line.crlf:
            return failed(run, "ends in CR LF", "end lines in \\n alone", line)
    return no_fault("")(subject)


def final_newline(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.no_final_newline:
            return failed(run, "the last line has no newline", "end it in \\n too", run.lines[-1])
    return no_fault("")(subject)


def request_id(subject: Subject) -> Finding:
    found = 0
    for run, line in subject.lines:
        if line.event is not None and line.event.request_id is not None and run.request_id:
            found += 1
            if line.event.request_id != run.request_id:
                return failed(run, f"the request's id was {run.request_id!r}", "echo the id as it came", line)
    return passed("echoed as it came") if found else idle("no event had a requestId; it is optional")


def timestamp(subject: Subject) -> Finding:
    found = 0
    for run, line in subject.lines:
        if line.event is not None and line.event.timestamp is not None:
            found += 1
            if not _is_datetime(line.event.timestamp):
                fix = "write it like 2026-01-24T18:00:00Z"
                return failed(run, f"timestamp {line.event.timestamp[:60]!r} is not ISO 8601", fix, line)
    return passed("ISO 8601") if found else idle("no event had a timestamp; it is optional")


def _is_datetime(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) > len("2026-01-24")


# --- assets, choices, errors ---------------------------------------------------------------------------


def _assets(subject: Subject) -> list[tuple[Observation, Line, Asset]]:
    return [(run, line, line.event) for run, line in subject.lines if isinstance(line.event, Asset)]


def each_asset(problem_of: Callable[[Line, Asset], tuple[str, str] | None]) -> Callable[[Subject], Finding]:
    def judge_assets(subject: Subject) -> Finding:
        found = _assets(subject)
        for run, line, asset in found:
            problem = problem_of(line, asset)
            if problem is not None:
                return failed(run, *problem, line)
        return passed("every one") if found else idle("it announced no asset")

    return judge_assets


def asset_ids(subject: Subject) -> Finding:
    found = _assets(subject)
    for run in subject.runs:
        seen: set[str] = set()
        for line in run.lines:
            if isinstance(line.event, Asset):
                identity = line.event.asset_id
                if identity in seen or not identity.strip():
                    problem = f"assetId {identity!r} is {'used twice' if identity in seen else 'empty'}"
                    return failed(run, problem, "give each asset of a run an id of its own", line)
                seen.add(identity)
    return passed("every one") if found else idle("it announced no asset")


def media_type(line: Line, asset: Asset) -> tuple[str, str] | None:
    if is_media_type(asset.media_type):
        return None
    return f"{asset.media_type!r} is not a media type", "use one like image/png or text/plain"


def asset_file(line: Line, asset: Asset) -> tuple[str, str] | None:
    if line.file_problem is None:
        return None
    return line.file_problem, "write a regular file, close it, then emit the event"


def asset_path(line: Line, asset: Asset) -> tuple[str, str] | None:
    if Path(asset.path).is_absolute():
        return None
    return f"{asset.path!r} depends on the working directory", "give the absolute path"


def asset_content(line: Line, asset: Asset) -> tuple[str, str] | None:
    return None if line.content_problem is None else (line.content_problem, "let mediaType match the content")


def asset_kind(line: Line, asset: Asset) -> tuple[str, str] | None:
    return None if asset.kind.strip() else ("kind is empty", "say what it is: image, audio, video, model")


def choices(subject: Subject) -> Finding:
    found = 0
    for run, line in subject.lines:
        if isinstance(line.event, UiEvent) and line.event.event == "narrative_choice":
            found += 1
            choices = (line.event.payload or {}).get("choices")
            if not (isinstance(choices, list) and choices and all(isinstance(one, str) for one in choices)):
                fix = 'send {"choices": ["Open the door", "Leave"]}'
                return failed(run, "narrative_choice needs a list of texts", fix, line)
    return passed("every one") if found else idle("it offered no choice")


def error_then_failure(subject: Subject) -> Finding:
    found = 0
    for run in subject.runs:
        errors = [line for line in run.lines if isinstance(line.event, ToolErrorEvent)]
        last = run.dones[-1].event if run.dones else None
        found += len(errors)
        if errors and isinstance(last, Done) and last.ok:
            return failed(run, "an error, and then done with ok true", "end with ok false", errors[-1])
        if errors and last is None:
            return failed(run, "an error, and no done after it", "write done with ok false", errors[-1])
    return passed("done with ok false followed") if found else idle("it reported no error")
