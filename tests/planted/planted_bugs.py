"""A story whose tools have planted bugs, for tests of how a bug is found from the record of its call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = """
import json, sys, time
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
raw = sys.stdin.read()
request = json.loads(raw)
(HOME / f"got-{request['tool']}.json").write_text(raw)


def emit(kind, **fields):
    print(json.dumps({"version": "0", "type": kind, **fields}), flush=True)

"""
TOOLS = {
    # the key is misspelt: the door never sees a lit lantern
    "lantern": """
emit("log", level="info", message="striking a match")
emit("state_patch", patch={"lantern": {"lti": True, "oil": request["input"]["oil"]}})
emit("done", ok=True, summary="It burns.")
""",
    "scales": """
sys.stderr.write("weighing " + str(request["input"]["weight"]) + "\\n")
emit("state_patch", patch={"scales": {"ratio": 100 / request["input"]["weight"]}})
emit("done", ok=True, summary="Weighed.")
""",
    "courier": """
mark = HOME / "courier.mark"
if not mark.exists():
    mark.touch()
    sys.stderr.write("the bridge is closed\\n")
    sys.exit(3)
mark.unlink()
time.sleep(0.8)
emit("done", ok=True, summary="Delivered.")
""",
    "bell": """
with (HOME / "rung").open("a") as file:
    file.write("x")
emit("done", ok=True, summary="It rings.")
""",
    "ledger": """
emit("state_patch", patch={"ledger": request["dependencies"]})
emit("done", ok=True, summary="Written down.")
""",
    "sleeper": """
import os
(HOME / "sleeper.pid").write_text(str(os.getpid()))
emit("log", level="info", message="asleep")
if request["input"].get("long"):
    time.sleep(60)
emit("done", ok=True, summary="Awake.")
""",
    "chatter": """
for number in range(5000):
    emit("log", level="info", message=f"line {number}")
emit("done", ok=True, summary="Silent.")
""",
}
MANIFESTS: dict[str, dict[str, Any]] = {
    "lantern": {
        "operation": "light",
        "wantsState": True,
        "parameters": {"type": "object", "properties": {"oil": {"type": "integer", "default": 7}}},
    },
    "scales": {"parameters": {"type": "object", "properties": {"weight": {"type": "number"}}}},
    "bell": {
        "effects": [
            {
                "type": "notification",
                "event": "bell:rung",
                "description": "the village wakes",
                "reversible": False,
            }
        ]
    },
    "sleeper": {"timeout": 20},
}
STORY = """
id = "planted"
title = "The House of Bugs"
premise = "Nothing here works as it says."
narrator = ["rules", "template"]

[opening]
narrative = "A lantern, a pair of scales, a courier."
choices = ["light the lantern"]

[state]
lantern = { lit = false, oil = 3 }
door = { open = false }
"""
RULES: list[tuple[str, list[dict[str, Any]]]] = [
    ("light", [{"id": "light", "tool": "lantern", "retries": 0}]),
    ("weigh", [{"id": "weigh", "tool": "scales", "retries": 0, "input": {"weight": 0}}]),
    ("send", [{"id": "send", "tool": "courier", "retries": 2}]),
    ("ring", [{"id": "ring", "tool": "bell", "retries": 0}]),
    ("rest", [{"id": "rest", "tool": "sleeper", "retries": 0, "input": {"name": "<b>'; rm -rf ~ #"}}]),
    ("talk", [{"id": "talk", "tool": "chatter", "retries": 0}]),
    (
        "audit",
        [
            {"id": "lamp", "tool": "lantern", "retries": 0, "input": {"oil": 2}},
            {"id": "book", "tool": "ledger", "retries": 0, "after": ["lamp"]},
        ],
    ),
]


def write_planted(root: Path) -> Path:
    """Write the story into `root`, and return it."""
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(STORY)
    rules = ""
    for name, calls in RULES:
        shown = ", ".join(
            "{ " + ", ".join(f"{key} = {_toml(value)}" for key, value in call.items()) + " }"
            for call in calls
        )
        rules += f'\n[[rule]]\nid = "{name}"\npatterns = ["{name}"]\nnarrative = "You {name}."\ncalls = [{shown}]\n'
    (root / "narrator.toml").write_text(rules)
    for name, body in TOOLS.items():
        tool = root / "tools" / name
        tool.write_text(f"#!{sys.executable} -S\n{HEAD}{body}")
        tool.chmod(0o755)
        manifest = {"name": name, "description": f"The {name}.", "timeout": 30, **MANIFESTS.get(name, {})}
        tool.with_name(f"{name}.tool.json").write_text(json.dumps(manifest))
    return root


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)
