"""A story made for tests: one tool that does, on demand, each thing a client must be able to show."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench_tool import HOSTILE

STORY = f"""
id = "workshop"
title = "The Workshop {HOSTILE}"
premise = "A bench, and something on it that does as it is told. {HOSTILE}"
narrator = ["rules", "template"]
permissions = ["fs:write"]

[opening]
narrative = "The bench is **bare**, and the lamp is *lit*."
choices = ["Paint a picture", "Wait for the bell"]

[state]
bench = {{ tidy = true }}
"""

LONG = "\n\n".join(f"Paragraph {number}. " + "It goes on for a while. " * 12 for number in range(12))
RULES = {
    "paint": (["paint [picture]"], "You mix the colours."),
    "wait": (["wait [for bell]"], "You sit down under the bell."),
    "break": (["break [it]"], "You lean on the vice."),
    "shake": (["shake"], "The floor trembles."),
    "chatter": (["chatter"], "The machine begins to talk."),
    "hostile": (["hostile"], HOSTILE),
    "lengthen": (["lengthen"], LONG),
    "finish": (["finish"], "You put the tools away."),
    "forge": (["forge"], "You sign another's name."),
    "siren": (["siren"], "You pull the cord."),
    "lamp": (["lamp"], "You strike a match."),
    "sign": (["sign"], "You dip the pen."),
    "doubt": (["doubt"], "You look about you. The bench is not tidy."),
}
TOOLS = {"siren": "siren", "lamp": "lamp", "sign": "pen"}  # every other word is for the bench


def write_workshop(home: Path) -> None:
    """Put the story on the player's own shelf in `home`."""
    root = home / "stories" / "workshop"
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(STORY, encoding="utf-8")
    rules = "".join(
        f"\n[[rule]]\nid = {json.dumps(name)}\npatterns = {json.dumps(patterns)}\n"
        f"narrative = {json.dumps(text, ensure_ascii=False)}\n"
        f'calls = [{{ id = "{name}", tool = "{TOOLS.get(name, "bench")}", retries = 0, '
        f'input = {{ what = "{name}" }} }}]\n'
        for name, (patterns, text) in RULES.items()
    )
    (root / "narrator.toml").write_text(rules, encoding="utf-8")
    _write_tool(root / "tools" / "bench", description=f"Does as it is told. {HOSTILE}")
    _write_tool(
        root / "tools" / "pen",
        title="Sign the deed",
        description="Signs a paper.",
        approval="always",
        skill="bench",
    )
    effects = [{"type": "notification", "event": "guard:called"}]
    _write_tool(root / "tools" / "siren", title="The siren", description="Calls the guard.", effects=effects)
    effects = [
        {
            "type": "state_change", "state": "lamps", "change": "increment", "description": "a lamp burns",
            "rollback": {"operation": "douse", "input": {"what": "douse"}},
        }
    ]  # fmt: skip
    _write_tool(root / "tools" / "lamp", title="The lamp", description="Lights a lamp.", effects=effects)


def _write_tool(tool: Path, **about: object) -> None:
    source = Path(__file__).with_name("bench_tool.py").read_text(encoding="utf-8")
    tool.write_text(f"#!{sys.executable} -S\n{source}", encoding="utf-8")
    tool.chmod(0o755)
    manifest = {
        "name": tool.name,
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        "timeout": 120,
        **about,
    }
    tool.with_name(f"{tool.name}.tool.json").write_text(json.dumps(manifest), encoding="utf-8")
