"""`narratoria doctor`: what is installed, what it can do, what is missing, and the command that adds it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import click

from narratoria import __version__
from narratoria.agent import chosen_model
from narratoria.cli import FAILED
from narratoria.cli.output import console, print_json, styled
from narratoria.errors import NarratoriaError
from narratoria.extras import EXTRAS, absent, install_command
from narratoria.kinds.browser import NAMES
from narratoria.kinds.process import marks, orphans, warm_conditions, warm_servers
from narratoria.kinds.process.confinement import told, tried_walls
from narratoria.store.default_store import default_store
from narratoria.store.store import data_home

_MARKS: Final = {"ok": ("✓", "green"), "missing": ("·", "yellow"), "broken": ("✗", "red")}
# Programs that the skeletons of `narratoria new tool` use.
_LANGUAGES: Final = {
    "node": (("node",), "apt install nodejs"),
    "bash": (("bash", "awk"), "apt install bash mawk"),
    "c": (("cc",), "apt install gcc"),
    "go": (("go",), "apt install golang-go"),
    "rust": (("rustc",), "apt install rustc"),
}


@dataclass(frozen=True)
class Finding:
    """A part of the installation. A missing part limits what can be done; a broken one must be repaired."""

    part: str
    verdict: Literal["ok", "missing", "broken"]
    says: str
    fix: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> int:
    """Tell what is installed and what is missing, with the command that adds it.

    The exit code is 1 if something is broken. What is merely missing is optional.
    """
    findings = list(examine())
    if as_json:
        print_json({"version": __version__, "findings": [asdict(one) for one in findings]})
    else:
        out = console()
        width = max(len(one.part) for one in findings)
        for one in findings:
            mark, style = _MARKS[one.verdict]
            out.print(styled((mark, style), (f" {one.part:{width}}  ", style), (one.says, "")))
            if one.fix:
                out.print(styled((" " * (width + 4), ""), ("→ ", "green"), (one.fix, "")))
    return FAILED if any(one.verdict == "broken" for one in findings) else 0


def examine() -> Iterator[Finding]:
    """Yield the findings, what matters most first."""
    yield Finding(
        "narratoria",
        "ok",
        f"{__version__} on Python {platform.python_version()}, {platform.platform(terse=True)}",
    )
    yield _home()
    yield _store()
    yield from map(_extra, EXTRAS)
    yield _model()
    yield _browser()
    yield _custody()
    yield _warm()
    yield _sandbox()
    yield from (_language(name, *needs) for name, needs in _LANGUAGES.items())


def _home() -> Finding:
    home = data_home()
    nearest = next(path for path in (home, *home.absolute().parents) if path.exists())
    if not nearest.is_dir() or not _takes_a_file(nearest):
        return Finding(
            "home", "broken", f"{home} cannot be written", "set NARRATORIA_HOME to a folder that can"
        )
    if nearest != home:
        return Finding("home", "ok", f"{home} (made when it is first needed)")
    free = shutil.disk_usage(home).free // 2**20
    if free < 100:
        return Finding("home", "broken", f"{home}: the disk has {free} MiB left", "make room")
    return Finding("home", "ok", f"{home}, {free:,} MiB free")


def _takes_a_file(folder: Path) -> bool:
    """Try to write: the permissions do not tell of a file system that is read-only, nor of what root may."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _store() -> Finding:
    address = os.environ.get("NARRATORIA_STORE", "")
    if not address and not (data_home() / "sessions.db").exists():
        return Finding("sessions", "ok", "none yet; SQLite in the home")
    parts = urlsplit(address)
    shown = (
        f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        if parts.scheme
        else address or "SQLite in the home"
    )
    try:
        store = default_store()
        try:
            count = sum(meta.begun for meta in store.list())
        finally:
            store.close()
    except (NarratoriaError, OSError) as error:
        return Finding("sessions", "broken", f"{shown}: {error}", "narratoria sessions salvage --help")
    return Finding("sessions", "ok", f"{count} in {shown}")


def _extra(name: str) -> Finding:
    extra = EXTRAS[name]
    if missing := absent(name):
        says = f"{extra.gives}: not installed ({', '.join(missing)})"
        return Finding(f"extra {name}", "missing", says, install_command(name))
    return Finding(f"extra {name}", "ok", extra.gives)


def _model() -> Finding:
    if url := os.environ.get("NARRATORIA_LLM_URL"):
        return Finding("model", "ok", f"NARRATORIA_LLM_URL is {url}")
    try:
        chosen = chosen_model.choice()
    except NarratoriaError as error:
        return Finding("model", "broken", str(error), "narratoria model use ADDRESS")
    if chosen is not None:
        return Finding("model", "ok", f"{chosen.model or 'the only model'} at {chosen.address}")
    if os.environ.get("OPENAI_API_KEY"):
        return Finding("model", "ok", "OPENAI_API_KEY is set")
    works = "rules work without" if absent("local") else "rules and the local narrator work without"
    says = f"no language model is configured; {works}"
    return Finding("model", "missing", says, "narratoria model find, or see docs/llm.md")


def _browser() -> Finding:
    if found := next(filter(None, map(shutil.which, NAMES)), None):
        return Finding("chromium", "ok", found)
    return Finding("chromium", "missing", "not on the PATH; web_scrape needs it", "apt install chromium")


def _custody() -> Finding:
    """Tell how far processes of tools can be followed."""
    if sys.platform != "linux" or not Path("/proc/self/stat").exists():
        says = "no /proc: a process that leaves its group can outlive its tool"
        return Finding("custody", "missing", says)
    adopts = "adopts orphans" if orphans.adopt() else "cannot adopt orphans"
    if marks.new_tag() == marks.UNTAGGED:
        says = (
            f"the hard limit on locks (ulimit -H -x) is too low to mark tools by, {adopts}: in a server or a program "
            "that embeds the runtime, a daemon that left its group and cleared its environment can outlive its tool"
        )
        return Finding("custody", "missing", says, "raise it to unlimited where the runtime is started")
    return Finding("custody", "ok", f"follows daemons through /proc, {adopts}")


def _warm() -> Finding:
    """Tell if tools whose manifest says `warm` can be."""
    if problem := warm_conditions.obstacle():
        return Finding("warm tools", "missing", f"{problem}: tools that ask for it are started cold")
    says = (
        f"forked from at most {warm_servers.MOST_SERVERS} servers, {warm_servers.MOST_BYTES >> 20} MiB in all"
    )
    return Finding("warm tools", "ok", says)


def _sandbox() -> Finding:
    """Tell which walls of the strict sandbox this system can put up; it is tried."""
    try:
        holds, missing = asyncio.run(tried_walls("strict"))
    except NarratoriaError as error:
        return Finding("sandbox", "broken", str(error), "narratoria call TOOL --sandbox trusted runs without")
    says = "; ".join(f"{wall}: {by}" for wall, by in holds.items())
    if missing:
        says = f"missing: {told(missing)}" + (f"; there: {says}" if says else "")
        return Finding("sandbox", "missing", says, "see docs/sandbox.md; strict tools are refused here")
    return Finding("sandbox", "ok", says)


def _language(name: str, programs: Sequence[str], fix: str) -> Finding:
    if missing := [one for one in programs if shutil.which(one) is None]:
        return Finding(f"tools in {name}", "missing", f"no {' and no '.join(missing)} on the PATH", fix)
    return Finding(f"tools in {name}", "ok", shutil.which(programs[0]) or programs[0])
