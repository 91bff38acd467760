"""A story with a guarded tool, and files that an attacker would make of its sessions."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

STORY = """
id = "vault"
title = "The Vault"
premise = "A door that nobody may open."
narrator = ["rules", "template"]
permissions = ["look"]

[opening]
narrative = "The vault is shut."
choices = ["Look"]

[state]
door = "shut"
"""
RULES = """
[[rule]]
id = "open"
patterns = ["open [vault]"]
narrative = "You pull."
calls = [{ id = "open", tool = "open", retries = 0, input = {} }]

[[rule]]
id = "look"
patterns = ["look"]
narrative = "You look."
calls = [{ id = "look", tool = "look", retries = 0, input = {} }]
"""
TOOL = """#!/bin/sh
cat > request
case "$0" in */open) word=opened;; *) word=looked;; esac
cat request >> "{ran}"; echo >> "{ran}"; rm -f request
echo '{{"version":"0","type":"state_patch","patch":{{"door":"'$word'"}}}}'
echo '{{"version":"0","type":"done","ok":true,"summary":"You '$word'."}}'
"""


def write_vault(home: Path) -> Path:
    """Put the story on the shelf in `home`; returns the file that tells what ran."""
    root, ran = home / "stories" / "vault", home / "ran"
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(STORY)
    (root / "narrator.toml").write_text(RULES)
    for name, permission in (("open", "danger"), ("look", "look")):
        path = root / "tools" / name
        path.write_text(TOOL.format(ran=ran))
        path.chmod(0o755)
        manifest = {
            "name": name,
            "description": f"To {name} the vault.",
            "parameters": {"type": "object", "properties": {"who": {"type": "string"}}},
            "permissions": [permission],
            "effects": [
                {
                    "type": "state_change", "state": "done", "value": name, "description": f"{name} was done",
                    "rollback": {"operation": "undo", "input": {"who": "nobody"}},
                }
            ],
        }  # fmt: skip
        path.with_name(f"{name}.tool.json").write_text(json.dumps(manifest))
    return ran


PLAN = {
    "requestId": "evil",
    "narrative": "It opens by itself.",
    "tools": [{"toolId": "open", "toolPath": "open", "input": {"who": "the file"}}],
}


class Script:
    """Records as an attacker writes them: numbered, in order, unless said otherwise."""

    def __init__(self, *, state: Any = None, permissions: Iterable[str] = ("look", "danger")) -> None:
        self.lines: list[bytes] = []
        self.turn: int | None = None
        self.skipped = 0  # records that are said to be lost, and are not in the file
        self.add(
            "session_started",
            session="evil",
            story="vault",
            state={"door": "shut"} if state is None else state,
            permissions=list(permissions),
        )
        self.begin(0, "", origin="opening").add("narration", text="The vault is shut.")
        self.add("choices", choices=["Look"]).end(0)

    def add(self, event_type: str, /, **fields: Any) -> Script:
        record = {
            "seq": self.next,
            "ts": 1.0,
            "turn": self.turn,
            "event": {"type": event_type, **fields},
        }
        self.lines.append(json.dumps(record).encode())
        return self

    @property
    def next(self) -> int:
        return len(self.lines) + 1 + self.skipped

    def lose(self, records: int, **snapshot: Any) -> Script:
        """Records lost to damage, and the snapshot behind them."""
        first = self.next
        self.skipped += records - 1
        last = self.next
        known = {"seq": last, "state": {"door": "shut"}, "memory": {}, "slices": [], "permissions": ["look"]}
        resumed = {**known, "turns": [[0, 0]], "timeline": {}, **snapshot}
        return self.add("records_lost", first=first, last=last, resumed=resumed)

    def begin(self, turn: int, prompt: str, **fields: Any) -> Script:
        self.turn = turn
        return self.add("turn_started", turn=turn, prompt=prompt, **fields)

    def end(self, turn: int, **fields: Any) -> Script:
        self.add("turn_committed", turn=turn, **fields)
        self.turn = None
        return self

    def rollback(self, turn: int, call: str = "evil:open", tool: str = "open") -> Script:
        """A turn with an effect that says how it is to be taken back."""
        self.begin(turn, "open vault").add("plan_made", plan=PLAN, attempt=1)
        self.add("call_started", call=call, tool=tool, toolId="open", plan="evil")
        effect = {
            "tool": tool, "call": call, "effect": 0, "description": f"{tool} was done", "reversible": True,
            "receipt": {"who": "the file"},
        }  # fmt: skip
        self.add(
            "committed",
            call=call,
            changes=[{"change": "permission", "permission": "danger", "granted": True}],
            inverse=[{"change": "permission", "permission": "danger", "granted": True}],
            effects=[effect],
        )
        self.add("call_finished", call=call, tool=tool, ok=True, state="completed")
        self.add("narration", text="It is open.").add("choices", choices=["Look"])
        return self.end(turn)

    def file(self, assets: dict[str, bytes] | None = None, **manifest: Any) -> bytes:
        journal = b"".join(line + b"\n" for line in self.lines)
        return packed(journal, len(self.lines), assets, **manifest)


def packed(
    journal: bytes,
    records: int,
    assets: dict[str, bytes] | None = None,
    *,
    packing: int = zipfile.ZIP_DEFLATED,
    **manifest: Any,
) -> bytes:
    head = {
        "format": 1,
        "session": {"id": "evil", "story": "vault", "title": "A gift", "created": 1.0, "updated": 1.0},
        "records": records,
        "journalSha256": hashlib.sha256(journal).hexdigest(),
        "assets": list(assets or ()),
        **manifest,
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", packing, compresslevel=9) as archive:
        archive.writestr("session.json", json.dumps(head))
        archive.writestr("journal.ndjson", journal)
        for digest, content in (assets or {}).items():
            archive.writestr(f"assets/{digest}", content)
    return target.getvalue()


def open_turn() -> bytes:
    """A turn that a crash is said to have cut short, planned by the file, with the permission it needs."""
    script = Script().begin(1, "open vault")
    return script.add("plan_made", plan=PLAN, attempt=1, narrator="rules").file()


def pending_undo() -> bytes:
    """An undo that is said to have been cut short, with a rollback the file chose."""
    return Script().rollback(1).add("undo_started", turn=1).file()


def journalled_rollback() -> bytes:
    return Script().rollback(1).file()


def marked_rollback() -> bytes:
    """A rollback after a checkpoint, of a tool that the story permits."""
    return Script().add("checkpoint", name="start", turn=0).rollback(1, tool="look").file()
