"""The line that matters in the last words of a program that crashed: what was raised, and where in its own source.

Python says it last, Node in the middle, most others first; around it are frames of the language and of libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_PYTHON_FRAME: Final = re.compile(r'^\s+File "([^"]+)", line (\d+)', re.MULTILINE)
_GROUP_EDGE: Final = re.compile(r"^ *(?:\| ?|\+[-+ ].*$)", re.MULTILINE)  # drawn around groups of exceptions
_NODE_FRAME: Final = re.compile(r"^\s+at (?:.*\(|async )?(?:file://)?(/[^()]*?):(\d+):\d+\)?$", re.MULTILINE)
_NODE_SOURCE: Final = re.compile(r"^(?:file://)?(/\S.*?):(\d+)$", re.MULTILINE)
_NODE_RAISED: Final = re.compile(
    r"^\s*\^+\n\s*(?:Uncaught:\n)?(\S.*)$", re.MULTILINE
)  # below the line and its mark
_NODE_REJECTED: Final = re.compile(r'^UnhandledPromiseRejection: .* with the reason (".*")\.$')
_ERROR: Final = re.compile(
    r"^(?:error: )?(?:Uncaught )?(?:\(in promise\) )?([A-Za-z_$][\w.$]*(?:Error|Exception|Interrupt|Exit)\b.*)$",
    re.MULTILINE,
)
_RUBY: Final = re.compile(r"^(?:ruby: )?(\S[^\n]*?):(\d+):(?:in [^\n]*?: | )(.+)$", re.MULTILINE)
_RUBY_FRAME: Final = re.compile(r"^\tfrom (\S.*?):(\d+):in ", re.MULTILINE)
_PERL: Final = re.compile(
    r"^(.*\S) at (\S.*?) line (\d+)(?:(?:, <\w*> (?:line|chunk) \d+)?\.|, near .*|, at EOF)$", re.MULTILINE
)
_PERL_FRAME: Final = re.compile(r"^\t.* called at (\S.*?) line (\d+)$", re.MULTILINE)
_PERL_FOLDERS: Final = re.compile(r" \(@INC .*\)$")  # a dozen folders in which a module was not found
_JAVAC: Final = re.compile(r"^(\S[^:\n]*):(\d+): (error: .+)$", re.MULTILINE)
_JAVA: Final = re.compile(r'^(?:Exception in thread "[^"\n]*" |Caused by: )(.+)$', re.MULTILINE)
_JAVA_FRAME: Final = re.compile(
    r"^\s+at (?!java\.|javax\.|jdk\.|sun\.|java\.base/|jdk\.)[^(\n]*\(([^():\n]+):(\d+)\)", re.MULTILINE
)
_DOTNET: Final = re.compile(r"^Unhandled exception\. (.+)$", re.MULTILINE)
_DOTNET_FRAME: Final = re.compile(r"^\s+at .* in (\S.*):line (\d+)$", re.MULTILINE)
_GO: Final = re.compile(r"^((?:panic|fatal error): .+)$", re.MULTILINE)
_GO_FRAME: Final = re.compile(r"^\t(/\S.*?\.go):(\d+)", re.MULTILINE)
_RUST: Final = re.compile(
    r"^thread '.*' (?:\(\d+\) )?panicked at (?:'(.*)', )?([^'\n]+?):(\d+):\d+(?::\n(.*))?$", re.MULTILINE
)
_PHP: Final = re.compile(
    r"^PHP (?:Fatal|Parse) error:\s+(?:Uncaught )?(.+?) in (/.+?)(?::| on line )(\d+)$", re.MULTILINE
)
_LUA: Final = re.compile(r"^\S*lua\S*: (\S.*?):(\d+): (.+)\n(?=stack traceback:)", re.MULTILINE)
# Folders of languages and of libraries: the author's own line is the one that called them.
_FOREIGN: Final = re.compile(
    r"node:|/node_modules/|/lib(?:64)?/python\d|^<|/(?:site|dist)-packages/"
    r"|/lib(?:64)?/ruby/|/gems/|/(?:share|lib\S*)/perl|/go/src/|/pkg/mod/"
)
_LONGEST: Final = 220  # characters of what was raised: the place is told behind it


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
        return f"it crashed: {crash}"
    last = stderr.strip().rpartition("\n")[2]
    return f"stderr ends: {last[:most]}" if last else ""


def _python(stderr: str) -> str:
    if "Exception Group Traceback" in stderr:
        stderr = _GROUP_EDGE.sub("", stderr)
    _, found, trace = stderr.rpartition("Traceback (most recent call last):")
    if not found:  # a mistake in the source itself has no traceback
        trace = stderr if re.search(r"^(?:Syntax|Indentation|Tab)Error: ", stderr, re.MULTILINE) else ""
    raised = [line for line in trace.splitlines() if line and not line[0].isspace()]
    frames = _PYTHON_FRAME.findall(trace)
    return _at(raised[0], _own(frames)[-1:] or frames[-1:]) if raised and frames else ""


def _node(stderr: str) -> str:
    if "Node.js v" not in stderr and "\n    at " not in stderr:
        return ""
    raised = _NODE_RAISED.search(stderr) or _ERROR.search(stderr)
    if raised is None:
        return ""
    if rejected := _NODE_REJECTED.match(raised[1]):
        return f"a promise was rejected and nobody caught it: {rejected[1]}"
    frames = _own(_NODE_FRAME.findall(stderr))
    return _at(raised[1], frames[:1] or _NODE_SOURCE.findall(stderr)[:1])


def _java(stderr: str) -> str:
    raised = list(_JAVA.finditer(stderr))
    if not raised:
        refused = _JAVAC.search(stderr)  # by the compiler
        return _at(refused[3], [(refused[1], refused[2])]) if refused else ""
    return _at(raised[-1][1], _JAVA_FRAME.findall(stderr, raised[-1].end())[:1])


def _dotnet(stderr: str) -> str:
    found = _DOTNET.search(stderr)
    return _at(found[1], _DOTNET_FRAME.findall(stderr)[:1]) if found else ""


def _go(stderr: str) -> str:
    found = _GO.search(stderr) if "\ngoroutine " in stderr else None
    return _at(found[1], _own(_GO_FRAME.findall(stderr))[:1]) if found else ""


def _rust(stderr: str) -> str:
    found = _RUST.search(stderr)
    return _at(f"panic: {found[1] or found[4] or 'no message'}", [(found[2], found[3])]) if found else ""


def _php(stderr: str) -> str:
    found = _PHP.search(stderr)
    return _at(found[1], [(found[2], found[3])]) if found else ""


def _lua(stderr: str) -> str:
    found = _LUA.search(stderr)
    return _at(found[3], [(found[1], found[2])]) if found else ""


def _perl(stderr: str) -> str:
    found = _PERL.search(stderr)
    if found is None:
        return ""
    frames = [(found[2], found[3]), *_PERL_FRAME.findall(stderr, found.end())]
    raised = _PERL_FOLDERS.sub("", found[1])
    return _at(raised, _own(frames)[:1] or frames[:1])


def _ruby(stderr: str) -> str:
    found = _RUBY.search(stderr)
    if found is None or not re.search(r"\([A-Z][\w:]*\)|unexpected|syntax error|\tfrom |undefined", stderr):
        return ""
    frames = [(found[1], found[2]), *_RUBY_FRAME.findall(stderr, found.end())]
    return _at(found[3], _own(frames)[:1] or frames[:1])


_READERS: Final[Iterable[Callable[[str], str]]] = (
    _python, _go, _rust, _php, _lua, _dotnet, _java, _node, _perl, _ruby,
)  # fmt: skip


def _own(frames: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the frames in the author's own files."""
    return [frame for frame in frames if not _FOREIGN.search(frame[0])]


def _at(raised: str, place: list[tuple[str, str]]) -> str:
    raised = raised.strip()
    if len(raised) > _LONGEST:
        raised = f"{raised[:_LONGEST]}…"
    if not place:
        return raised
    file, line = place[0]
    return f"{raised} ({file.rpartition('/')[2]}, line {line})"
