"""The line that matters in the last words of a program that crashed: what was raised, and where in its own source.

Python says it last, Node in the middle, Ruby, Perl and Java first; around it are frames of the language itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_PYTHON_FRAME: Final = re.compile(r'^\s+File "([^"]+)", line (\d+)', re.MULTILINE)
_RAISED: Final = re.compile(
    r"^(?:Uncaught )?([A-Za-z_$][\w.$]*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE
)
_NODE_FRAME: Final = re.compile(r"^\s+at (?:.*\()?(?:file://)?(/[^()]*?):(\d+):\d+\)?$", re.MULTILINE)
_NODE_SOURCE: Final = re.compile(r"^(?:file://)?(/\S.*?):(\d+)$", re.MULTILINE)
_RUBY: Final = re.compile(r"^(?:ruby: )?(\S[^\n]*?):(\d+):(?:in [^\n]*?: | )(.+)$", re.MULTILINE)
_PERL: Final = re.compile(
    r"^(.*\S) at (\S.*?) line (\d+)(?:(?:, <\w*> (?:line|chunk) \d+)?\.|, near .*|, at EOF)$", re.MULTILINE
)
_JAVAC: Final = re.compile(r"^(\S[^:\n]*):(\d+): (error: .+)$", re.MULTILINE)
_JAVA: Final = re.compile(r'^(?:Exception in thread "[^"\n]*" |Caused by: )(.+)$', re.MULTILINE)
_JAVA_FRAME: Final = re.compile(
    r"^\s+at (?!java\.|javax\.|jdk\.|sun\.|java\.base/|jdk\.)[^(\n]*\(([^():\n]+):(\d+)\)", re.MULTILINE
)


def crash_line(stderr: str) -> str:
    """Return what was raised and where, `ValueError: no oil (ring, line 3)`; "" if no crash is recognised."""
    for read in _READERS:
        found = read(stderr)
        if found:
            return found
    return ""


def last_words(stderr: str, most: int = 300) -> str:
    """Return the crash if there is one, or else the last line, each with what it is; "" for an empty stderr."""
    crash = crash_line(stderr)
    if crash:
        return f"it crashed: {crash[:most]}"
    last = stderr.strip().rpartition("\n")[2]
    return f"stderr ends: {last[:most]}" if last else ""


def _python(stderr: str) -> str:
    _, found, trace = stderr.rpartition("Traceback (most recent call last):")
    if not found:  # a mistake in the source itself has no traceback
        trace = stderr if re.search(r"^(?:Syntax|Indentation|Tab)Error: ", stderr, re.MULTILINE) else ""
    raised = [line for line in trace.splitlines() if line and not line[0].isspace()]
    frames = _PYTHON_FRAME.findall(trace)
    own = [
        frame
        for frame in frames
        if not re.search(r"/lib(?:64)?/python\d|^<|/(?:site|dist)-packages/", frame[0])
    ]
    return _at(raised[0], own[-1:] or frames[-1:]) if raised and frames else ""


def _node(stderr: str) -> str:
    if "Node.js v" not in stderr and "\n    at " not in stderr:
        return ""
    raised = _RAISED.search(stderr)
    if raised is None:
        return ""
    frames = [
        one for one in _NODE_FRAME.findall(stderr) if "node:" not in one[0] and "/node_modules/" not in one[0]
    ]
    return _at(raised[1], frames[:1] or _NODE_SOURCE.findall(stderr)[:1])


def _java(stderr: str) -> str:
    raised = list(_JAVA.finditer(stderr))
    if not raised:
        refused = _JAVAC.search(stderr)  # by the compiler
        return _at(refused[3], [(refused[1], refused[2])]) if refused else ""
    return _at(raised[-1][1], _JAVA_FRAME.findall(stderr, raised[-1].end())[:1])


def _perl(stderr: str) -> str:
    found = _PERL.search(stderr)
    return _at(found[1], [(found[2], found[3])]) if found else ""


def _ruby(stderr: str) -> str:
    found = _RUBY.search(stderr)
    if found is None or not re.search(r"\([A-Z][\w:]*\)|unexpected|syntax error|\tfrom |undefined", stderr):
        return ""
    return _at(found[3], [(found[1], found[2])])


_READERS: Final[Iterable[Callable[[str], str]]] = (_python, _java, _node, _perl, _ruby)


def _at(raised: str, place: list[tuple[str, str]]) -> str:
    if not place:
        return raised.strip()
    file, line = place[0]
    return f"{raised.strip()} ({file.rpartition('/')[2]}, line {line})"
