"""Rules on how a tool ends, and on what it does with requests it did not expect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from narratoria.conformance.observation import LINGER, Observation
from narratoria.conformance.verdicts import Finding, Subject, failed, idle, passed
from narratoria.events import Done
from narratoria.kinds.process.crash_lines import crash_line, last_words
from narratoria.kinds.process.verdict import at_a_wall
from narratoria.unicode_text import escaped

_CRASH_MARKS: Final = ("Traceback (most recent", "panicked at", "Segmentation fault", "    at Object.")

# --- the end -------------------------------------------------------------------------------------------


def done_once(subject: Subject) -> Finding:
    run = subject.runs[0]
    if not run.dones and not run.ended_by_itself:
        return idle("it was ended before it came to that")
    if not run.dones and any(b'"done"' in line.head and line.fault != "whole-lines" for line in run.faults):
        return idle("a line that was to be one has another fault: mend that first")
    if not run.dones:
        fix = 'write {"version":"0","type":"done","ok":true} as the last line, and flush it'
        return failed(run, "there was no `done` event (MISSING_DONE)", fix)
    if len(run.dones) > 1:
        return failed(
            run, f"{len(run.dones)} done events", "write exactly one, as the last line", run.dones[1]
        )
    if run.lines[-1] is not run.dones[0]:
        return failed(run, "comes after done, which must be the end", "write done last", run.lines[-1])
    return passed("exactly one, at the end")


def nothing_after_done(subject: Subject) -> Finding:
    found = False
    for run in subject.runs:
        if run.dones:
            found = True
            at = run.lines.index(run.dones[0])
            if at + 1 < len(run.lines):
                fix = "write done last; what follows is ignored"
                return failed(run, "was written after done", fix, run.lines[at + 1])
    return passed("done was last") if found else idle("there was no done")


def exit_status(subject: Subject) -> Finding:
    run = subject.runs[0]
    if not run.ended_by_itself:
        return idle("it had to be ended")
    if run.signal is not None:
        problem = f"the process was ended by signal {run.signal}; {_last_words(run)}"
        return failed(run, problem, "find out what ended it, and exit 0")
    if run.exit_code:
        problem = f"the process exited with status {run.exit_code} (NON_ZERO_EXIT); {_last_words(run)}"
        return failed(run, problem, "exit 0 and say what went wrong in `error` and `done`")
    return passed("0")


def _last_words(run: Observation) -> str:
    said = escaped(last_words(run.stderr, 200)) or "its stderr is empty"
    return said + at_a_wall(run.sandbox, run.stderr)


def ends(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.timed_out:
            problem = f"did not end within {run.allowed:g} s and wrote no `done` (TIMEOUT)"
            return failed(run, problem, "exit when the work is done; close what keeps it alive")
    return passed(f"the longest run took {max(run.duration for run in subject.runs) * 1000:.0f} ms")


def ends_promptly(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.lingered:
            fix = "exit right after done: stop threads, timers and servers"
            return failed(run, f"still ran {LINGER:g} s after its `done`", fix)
    return passed("it exits with its done") if any(run.dones for run in subject.runs) else idle("no done")


def leaves_nothing(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.left_behind:
            problem = f"left running after its end: {', '.join(run.left_behind[:3])}"
            return failed(run, problem, "wait for your children, or end them; they are killed otherwise")
    return passed("no process outlived it")


def stops_on_term(subject: Subject) -> Finding:
    asked = [run for run in subject.runs if run.asked_to_stop]
    for run in asked:
        if run.ignored_term:
            return failed(run, "ignored TERM and had to be killed", "end when TERM comes; clean up briefly")
    return passed("it ended when asked") if asked else idle("it never had to be stopped")


def within_limits(subject: Subject) -> Finding:
    for run in subject.runs:
        if run.over:
            fix = "log less; write large data to a file and announce it with an `asset` event"
            return failed(run, f"{run.over} (OUTPUT_LIMIT)", fix)
    return passed("no cap was passed")


def flushes(subject: Subject) -> Finding:
    if not all(run.writes_seen for run in subject.runs):
        return idle("this system does not show single writes")
    for run in subject.runs:
        if run.crowded_write is not None:
            fix = "flush after every event (Python: print(…, flush=True); awk: fflush(); C: fflush(stdout))"
            return failed(run, "came in one write with the line before it", fix, run.crowded_write)
    return passed("one write a line") if any(run.lines for run in subject.runs) else idle("no output")


def stderr(subject: Subject) -> Finding:
    for run in subject.runs:
        if crash_line(run.stderr) or any(mark in run.stderr for mark in _CRASH_MARKS):
            return failed(run, _last_words(run), "catch it; emit `error` and done with ok false")
    return passed("no crash") if any(run.stderr for run in subject.runs) else idle("stderr was not used")


# --- hostile requests ----------------------------------------------------------------------------------


def bears(name: str, *, same: bool = False) -> Callable[[Subject], Finding]:
    """Judge that the runs of a hostile request ended properly; with `same`, as well as the good one did."""

    def judge_runs(subject: Subject) -> Finding:
        runs = subject.by_rule.get(name)
        if not runs:
            return idle("not tried, since the good request already ends badly: mend that first")
        for run in runs:
            rude = rudeness(run)
            if rude is not None:
                fix = "answer with `error` and done with ok false, exit 0"
                return failed(run, rude, "ignore fields you do not know" if same else fix)
            if same and _said_ok(subject.runs[0]) and not _said_ok(run):
                return failed(
                    run, "it failed, though it succeeds without them", "ignore fields you do not know"
                )
        return passed("it succeeded" if all(map(_said_ok, runs)) else "it refused politely")

    return judge_runs


def rudeness(run: Observation) -> str | None:
    """Return the way a run ended badly, or None."""
    if run.over or run.timed_out:
        return run.over or f"did not end within {run.allowed:g} s"
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
