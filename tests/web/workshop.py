"""A story made for tests: one tool that does, on demand, each thing a client must be able to show."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HOSTILE = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1"> 🔥 漢字 שלום'

STORY = f"""
id = "workshop"
title = "The Workshop {HOSTILE.replace('"', "'")}"
premise = "A bench, and something on it that does as it is told. {HOSTILE.replace('"', "'")}"
narrator = ["rules", "template"]
permissions = ["fs:write"]

[opening]
narrative = "The bench is **bare**, and the lamp is *lit*."
choices = ["Paint a picture", "Wait for the bell"]

[state]
bench = {{ tidy = true }}
"""

RULES = {
    "paint": "You mix the colours.",
    "wait": "You sit down under the bell.",
    "break": "You lean on the vice.",
    "shake": "The floor trembles.",
    "chatter": "The machine begins to talk.",
    "hostile": HOSTILE,
    "lengthen": "\n\n".join(
        f"Paragraph {number}. " + "It goes on for a while. " * 12 for number in range(12)
    ),
    "finish": "You put the tools away.",
}

PATTERNS = {
    "paint": ["paint [picture]"],
    "wait": ["wait [for bell]"],
    "break": ["break [it]"],
    "shake": ["shake"],
    "chatter": ["chatter"],
    "hostile": ["hostile"],
    "lengthen": ["lengthen"],
    "finish": ["finish"],
}

TOOL = r"""
import json, os, struct, sys, tempfile, zlib
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
HOSTILE = {hostile!r}

def emit(type, **fields):
    sys.stdout.write(json.dumps({{"version": "0", "type": type, **fields}}) + "\n")
    sys.stdout.flush()

def done(summary, ok=True):
    emit("done", ok=ok, summary=summary)

def choices(*texts):
    emit("ui_event", event="narrative_choice", payload={{"choices": list(texts)}})

def asset(name, kind, media_type, content, **metadata):
    path = Path(tempfile.mkdtemp()) / name
    path.write_bytes(content)
    emit("asset", assetId=name, kind=kind, mediaType=media_type, path=str(path), metadata=metadata)

def png(width, height):
    row = b"\0" + b"".join(bytes((90 + 160 * x // width, 40, 160)) for x in range(width))
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")

def wav():
    data = b"".join(struct.pack("<h", (step * 400) % 8000 - 4000) for step in range(8000))
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<I", len(data)) + data

def paint():
    emit("log", level="info", message="mixing", fields={{"progress": 0.5}})
    emit("state_patch", patch={{"bench": {{"picture": "wet", "tidy": False}}}})
    asset("dusk.png", "image", "image/png", png(320, 180), title="Dusk over the yard", width=320, height=180)
    asset("bell.wav", "audio", "audio/wav", wav(), title="The bell")
    asset("sign.svg", "image", "image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><script>window.hacked=1</script><rect width="60" height="40" fill="teal"/></svg>', title="A sign")
    asset("page.html", "document", "text/html", b"<script>parent.hacked=1</script>", title="A page")
    choices("Look closer", "Hang it up")
    done("It is good enough.")

def wait():
    emit("log", level="info", message="the rope hangs still")
    emit("state_patch", patch={{"bell": {{"rung": True}}}})
    with open(HOME / "gate") as gate:  # a pipe: opens when the test writes to it
        gate.read()
    choices("Listen", "Wait for the bell")
    done("The bell rings.")

def break_():
    sys.stderr.write("the jaw is cracked\n")
    emit("error", errorCode="VICE_BROKEN", errorMessage="The vice gives way " + HOSTILE)
    done("It is broken.", ok=False)

def shake():
    emit("ui_event", event="camera_shake", payload={{"strength": 0.4, "note": HOSTILE}})
    done("Dust falls.")

def chatter():
    count = int((HOME / "lines").read_text())
    for number in range(count):
        emit("log", level="warn" if number % 100 == 0 else "info", message=f"line {{number}}")
    done("It falls silent.")

def hostile():
    emit("log", level="info", message=HOSTILE, fields={{HOSTILE: HOSTILE}})
    emit("state_patch", patch={{HOSTILE: {{HOSTILE: HOSTILE}}}})
    asset("odd.bin", HOSTILE, "application/x-odd", b"odd", title=HOSTILE, caption=HOSTILE)
    emit("ui_event", event=HOSTILE, payload={{HOSTILE: HOSTILE}})
    choices(HOSTILE)
    done(HOSTILE)

def lengthen():
    choices("Lengthen", "Finish")
    done("So it goes.")

def finish():
    emit("state_patch", patch={{"ending": {{"id": "done", "title": "A tidy bench"}}}})
    done("The End.")

what = json.load(sys.stdin)["input"]["what"]
{{"break": break_}}.get(what, globals().get(what))()
"""


def write_workshop(home: Path) -> None:
    """Put the story on the player's own shelf in `home`."""
    root = home / "stories" / "workshop"
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(STORY, encoding="utf-8")
    rules = "".join(
        f"\n[[rule]]\nid = {json.dumps(name)}\npatterns = {json.dumps(PATTERNS[name])}\n"
        f"narrative = {json.dumps(text, ensure_ascii=False)}\n"
        f'calls = [{{ id = "{name}", tool = "bench", input = {{ what = "{name}" }}, retries = 0 }}]\n'
        for name, text in RULES.items()
    )
    (root / "narrator.toml").write_text(rules, encoding="utf-8")
    tool = root / "tools" / "bench"
    tool.write_text(f"#!{sys.executable} -S\n{TOOL.format(hostile=HOSTILE)}", encoding="utf-8")
    tool.chmod(0o755)
    manifest = {
        "name": "bench",
        "description": f"Does as it is told. {HOSTILE}",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        "timeout": 120,
    }
    (root / "tools" / "bench.tool.json").write_text(json.dumps(manifest), encoding="utf-8")
