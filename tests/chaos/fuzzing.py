"""Files and streams from outside, damaged by lot: each is read, or refused with one of the errors that are documented.

A case that takes long, ends in another exception, or is refused with words that cannot be printed, is a fault.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
import signal
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.chaos.damage import damaged

from narratoria import bounds, strict_json
from narratoria.errors import JournalError, PlanRejected, StoryInvalid, ToolValidationError
from narratoria.kinds.from_manifest import tool_from_manifest
from narratoria.kinds.manifest import parse_manifest
from narratoria.kinds.ndjson import Decoder, ProtocolFailure
from narratoria.kinds.process.process_tool import PROCESS
from narratoria.lore.entries import LoreInvalid, front_matter
from narratoria.lore.world_info import ImportRejected, decode, import_data
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument
from narratoria.skills.frontmatter import FrontmatterInvalid, read_frontmatter
from narratoria.store.fold import fold
from narratoria.store.portable import import_session
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.tool import ToolContext, ToolResult

ROOT: Final = Path(__file__).resolve().parents[2]
LONGEST: Final = 5.0  # seconds of processor time for one case
MOST_FAULTS: Final = 20  # of one target, after which no more are looked for
IMPORTS: Final = 200  # into one store


class Hang(Exception):
    """A case takes too long."""


Reader = Callable[[bytes, random.Random], object]


@dataclass(frozen=True)
class Target:
    """Something that reads what comes from outside, and how it may refuse it."""

    share: float  # of all cases
    documents: Callable[[], Sequence[bytes]]
    read: Reader | type[StoryReader | Importer]
    refusals: tuple[type[Exception], ...]


# --- the readers -----------------------------------------------------------------------------------------------


def read_stream(data: bytes, chance: random.Random) -> None:
    decoder = Decoder("fuzzed")
    at = 0
    while at < len(data):
        step = chance.choice((1, 7, 64, 4096, len(data)))
        decoder.feed(data[at : at + step])
        at += step
    decoder.close()


def read_plan(data: bytes, chance: random.Random) -> None:
    plan = PlanDocument.from_json(data)
    if PlanDocument.from_json(plan.to_json()) != plan:
        raise AssertionError("a plan that is written and read is another one")


def read_manifest(data: bytes, chance: random.Random) -> None:
    manifest = parse_manifest(strict_json.read(data), where="fuzzed.tool.json")
    tool_from_manifest(manifest, _nothing, kind=PROCESS, checks=None, origin=ROOT, bind=lambda effect: effect)


async def _nothing(params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
    return ToolResult.ok(None)


def read_card(data: bytes, chance: random.Random) -> None:
    import_data(decode(data, "fuzzed"), "fuzzed")


def read_lore(data: bytes, chance: random.Random) -> None:
    front_matter("fuzzed", data.decode(errors="replace"))


def read_skill(data: bytes, chance: random.Random) -> None:
    read_frontmatter(data.decode(errors="replace"))


class StoryReader:
    """Reads a story whose files are damaged, one of them in each case."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="narratoria-fuzz-"))
        shutil.copytree(ROOT / "stories" / "torch", self.folder / "torch")

    def __call__(self, data: bytes, chance: random.Random) -> None:
        name = "narrator.toml" if b"[[rule]]" in data else "story.toml"
        whole = (ROOT / "stories" / "torch" / name).read_bytes()
        try:
            (self.folder / "torch" / name).write_bytes(data)
            Story.load(self.folder / "torch")
        finally:
            (self.folder / "torch" / name).write_bytes(whole)

    def close(self) -> None:
        shutil.rmtree(self.folder)


class Importer:
    """Takes session files in, whose journals or whose bytes are damaged; what it takes in can be opened."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="narratoria-fuzz-"))
        self.store: SqliteStore | None = None
        self.count = 0

    def __call__(self, data: bytes, chance: random.Random) -> None:
        if self.store is None or self.count % IMPORTS == 0:
            self.renew()
        assert self.store is not None
        self.count += 1
        meta = import_session(self.store, io.BytesIO(data if data.startswith(b"PK") else repacked(data)))
        self.store.restore(meta.id)
        fold(self.store.read(meta.id))
        self.store.delete(meta.id)

    def renew(self) -> None:
        if self.store is not None:
            self.store.close()
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        self.store = SqliteStore(self.folder / "sessions.db")

    def close(self) -> None:
        if self.store is not None:
            self.store.close()
        shutil.rmtree(self.folder)


def repacked(journal: bytes) -> bytes:
    """A session file with this journal, and with the right hash: an attacker computes it too."""
    lines = journal.count(b"\n")
    head = {
        "format": 1, "session": {"id": "fuzzed", "story": "torch", "title": "Fuzzed", "created": 1.0, "updated": 1.0},
        "records": lines, "journalSha256": hashlib.sha256(journal).hexdigest(), "assets": [],
    }  # fmt: skip
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("session.json", json.dumps(head))
        archive.writestr("journal.ndjson", journal)
    return target.getvalue()


# --- the documents ---------------------------------------------------------------------------------------------


def streams() -> list[bytes]:
    lines: list[dict[str, Any]] = [
        {"type": "log", "level": "info", "message": "Grüße", "fields": {"a": [1, 2.5]}},
        {"type": "state_patch", "patch": {"torch": {"lit": True, "fuel": None}, "list": [{"x": 1}]}},
        {"type": "asset", "assetId": "a", "kind": "image", "mediaType": "image/png", "path": "/tmp/a.png"},
        {"type": "ui_event", "event": "narrative_choice", "payload": {"choices": ["Go", "Stay"]}},
        {"type": "error", "errorCode": "BROKEN", "errorMessage": "it is broken", "details": {"why": None}},
        {"type": "done", "ok": True, "summary": "done"},
    ]
    whole = b"".join(json.dumps({"version": "0", **line}).encode() + b"\n" for line in lines)
    return [
        whole,
        whole[: whole.index(b"error")],
        *(json.dumps({"version": "0", **one}).encode() for one in lines),
    ]


def plans() -> list[bytes]:
    found = [path.read_bytes() for path in sorted((ROOT / "examples" / "plans").rglob("*.json"))]
    made = {
        "requestId": "p", "narrative": "You go.", "parallel": True, "disabledSkills": ["x"],
        "metadata": {"generationAttempt": 2, "parentPlanId": "o"},
        "tools": [
            {"toolId": "a", "toolPath": "walk", "input": {"n": 1}, "dependencies": [], "required": True, "async": True,
             "retryPolicy": {"maxRetries": 3, "backoffMs": 100}},
            {"toolId": "b", "toolPath": "look", "input": {"at": {"$from": "a", "path": "x.y", "default": 1},
             "raw": {"$literal": {"$from": 1}}}, "dependencies": ["a"], "required": False, "approval": True},
        ],
    }  # fmt: skip
    return [*found, json.dumps(made).encode()]


def manifests() -> list[bytes]:
    folders = [ROOT / "examples" / "tools", ROOT / "stories"]
    return [path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.tool.json"))]


def cards() -> list[bytes]:
    entry = {"uid": 0, "key": ["lamp", "/lamp( room)?/i"], "keysecondary": ["storm"], "comment": "The tower",
             "content": "{{char}} has 212 steps.", "constant": False, "selective": True, "selectiveLogic": 2,
             "order": 40, "disable": False, "probability": 50, "extensions": {}}  # fmt: skip
    world = {"entries": {"0": entry, "1": {**entry, "uid": 1, "constant": True}}}
    card = {
        "spec": "chara_card_v3", "spec_version": "3.0",
        "data": {"name": "Ines", "description": "{{char}} keeps the light.", "personality": "Terse.", "scenario": "",
                 "first_mes": "<USER>, shut the door.", "alternate_greetings": ["Hm."], "tags": ["sea"],
                 "character_book": {"entries": [{"keys": ["oil"], "content": "@@depth 3\n\nOil is low.",
                  "enabled": True, "insertion_order": 8, "use_regex": True, "extensions": {}}]}},
    }  # fmt: skip
    texts = [json.dumps(one).encode() for one in (world, card)]
    return [*texts, _png(texts[1])]


def _png(card: bytes) -> bytes:
    import base64
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + chunk(b"tEXt", b"ccv3\0" + base64.b64encode(card))
        + chunk(b"IDAT", zlib.compress(b"\0\0"))
        + chunk(b"IEND", b"")
    )


def lore_files() -> list[bytes]:
    return [
        b'+++\nkeywords = ["lamp", "/lamp( room)?/i"]\nwhen = { "torch.lit" = true }\norder = 3\n+++\nIt is old.\n',
        b'+++\nkeywords = ["a"]\nalso = ["b"]\nlogic = "all"\nalways = true\n+++\nText.\n',
    ]


def skill_files() -> list[bytes]:
    found = [path.read_bytes() for path in sorted(ROOT.glob("src/narratoria/skills/core/*/SKILL.md"))]
    return [
        *found,
        b"---\nname: a-skill\ndescription: |\n  Does\n  this.\nmetadata:\n  a: 'b'\n---\n# Body\n",
    ]


def story_files() -> list[bytes]:
    return [(ROOT / "stories" / "torch" / name).read_bytes() for name in ("story.toml", "narrator.toml")]


def journals() -> list[bytes]:
    """The journal of a short game, and the file of it."""
    plan = {
        "requestId": "p",
        "narrative": "It opens.",
        "tools": [{"toolId": "open", "toolPath": "open", "input": {}}],
    }
    call = {"call": "p:open", "tool": "open"}
    rows: list[tuple[int | None, dict[str, Any]]] = [
        (None, {"type": "session_started", "session": "x", "story": "torch", "state": {"door": "shut"},
                "permissions": ["look"]}),
        (0, {"type": "turn_started", "turn": 0, "prompt": "", "origin": "opening"}),
        (0, {"type": "narration", "text": "It is dark."}), (0, {"type": "choices", "choices": ["Look"]}),
        (0, {"type": "turn_committed", "turn": 0}),
        (1, {"type": "turn_started", "turn": 1, "prompt": "open"}),
        (1, {"type": "plan_made", "plan": plan, "attempt": 1, "narrator": "rules"}),
        (1, {"type": "call_started", **call, "toolId": "open", "plan": "p", "attempt": 1, "input": {}}),
        (1, {"type": "call_emitted", "call": "p:open", "event": {"version": "0", "type": "state_patch",
             "patch": {"door": "open"}}}),
        (1, {"type": "committed", "call": "p:open", "changes": [9],
             "inverse": [{"change": "patch", "patch": {"door": "shut"}}]}),
        (1, {"type": "call_finished", **call, "ok": True, "state": "completed", "attempts": 1, "duration": 0.1}),
        (1, {"type": "plan_finished", "plan": "p", "success": True, "failed": [], "duration": 0.1}),
        (1, {"type": "narration", "text": "It opens."}), (1, {"type": "choices", "choices": []}),
        (1, {"type": "turn_committed", "turn": 1}),
        (None, {"type": "checkpoint", "name": "here", "turn": 1}),
        (None, {"type": "turn_undone", "turn": 1}), (None, {"type": "turn_redone", "turn": 1}),
    ]  # fmt: skip
    lines = [
        json.dumps({"seq": seq, "ts": 1.0 + seq, "turn": turn, "event": event}).encode()
        for seq, (turn, event) in enumerate(rows, 1)
    ]
    journal = b"".join(line + b"\n" for line in lines)
    return [journal, journal, journal, repacked(journal)]


TARGETS: Final[dict[str, Target]] = {
    "stream": Target(0.55, streams, read_stream, (ProtocolFailure,)),
    "plan": Target(0.22, plans, read_plan, (PlanRejected,)),
    "manifest": Target(0.03, manifests, read_manifest, (ToolValidationError, bounds.DocumentFault)),
    "card": Target(0.17, cards, read_card, (ImportRejected,)),
    "lore": Target(0.013, lore_files, read_lore, (LoreInvalid,)),
    "skill": Target(0.005, skill_files, read_skill, (FrontmatterInvalid,)),
    "story": Target(0.002, story_files, StoryReader, (StoryInvalid,)),
    "import": Target(0.01, journals, Importer, (JournalError,)),
}


COSTLY: Final = frozenset({"story", "import", "skill"})  # some milliseconds for a case
_opened: dict[str, Reader] = {}


@contextlib.contextmanager
def opened(name: str) -> Iterator[None]:
    """Open the reader of a target, if it holds files, and close it."""
    made = TARGETS[name].read
    reader = made() if isinstance(made, type) else made
    _opened[name] = reader
    try:
        yield
    finally:
        if isinstance(reader, StoryReader | Importer):
            reader.close()
        del _opened[name]


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Raise `Hang` in a case that takes too long, by processor time: others may be using the machine."""

    def ring(*_: object) -> None:
        raise Hang(f"more than {LONGEST:g} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def case(name: str, number: int) -> str | None:
    """Run one case; return what is wrong, or None."""
    target = TARGETS[name]
    documents = _documents(name)
    chance = random.Random(f"{name} {number}")
    data = damaged(chance.choice(documents), chance, documents)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        _opened[name](data, chance)
    except target.refusals as refusal:
        try:
            told = str(refusal).encode()
        except UnicodeEncodeError:
            return f"the refusal cannot be printed: {str(refusal)!r}\n"
        return None if b"Traceback" not in told else f"a traceback in the refusal: {refusal}\n"
    except Exception:  # whatever it is, it is what this is looking for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


_known: dict[str, Sequence[bytes]] = {}


def _documents(name: str) -> Sequence[bytes]:
    if name not in _known:
        _known[name] = TARGETS[name].documents()
    return _known[name]


def run(cases: int, first: int = 0, only: str | None = None) -> int:
    """Run so many cases in all; return how many were faults."""
    broken = 0
    for name, target in TARGETS.items():
        if only in (None, name):
            with bounded(), opened(name):
                broken += _run(name, first, cases if only else max(1, round(cases * target.share)))
    return broken


def _run(name: str, first: int, count: int) -> int:
    started, faults = time.monotonic(), 0
    for number in range(first, first + count):
        fault = case(name, number)
        if fault is not None:
            faults += 1
            again = f"python scripts/chaos.py fuzz --only {name} --first {number} --cases 1"
            print(f"{name} case {number}:\n{fault}to repeat it: {again}", flush=True)
            if faults >= MOST_FAULTS:
                break
    print(f"fuzz {name}: {count:,} cases, {faults} faults, {time.monotonic() - started:.0f} s", flush=True)
    return faults
