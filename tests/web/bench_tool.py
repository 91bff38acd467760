"""The one tool of the workshop story: does, on demand, each thing a client must be able to show."""

import json
import struct
import sys
import tempfile
import zlib
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'> 🔥 漢字 שלום"
SIGN = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><script>window.hacked=1</script>'
    b'<rect width="60" height="40" fill="teal"/></svg>'
)


def emit(event_type, **fields):
    sys.stdout.write(json.dumps({"version": "0", "type": event_type, **fields}) + "\n")
    sys.stdout.flush()


def done(summary, ok=True):
    emit("done", ok=ok, summary=summary)


def choices(*texts):
    emit("ui_event", event="narrative_choice", payload={"choices": list(texts)})


def asset(name, kind, media_type, content, **metadata):
    path = Path(tempfile.mkdtemp(dir=HOME)) / name
    path.write_bytes(content)
    emit("asset", assetId=name, kind=kind, mediaType=media_type, path=str(path), metadata=metadata)


def png(width, height):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    row = b"\0" + b"".join(bytes((90 + 160 * x // width, 40, 160)) for x in range(width))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")


def wav():
    data = b"".join(struct.pack("<h", (step * 400) % 8000 - 4000) for step in range(8000))
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    sizes = struct.pack("<I", 36 + len(data)), struct.pack("<I", len(data))
    return b"RIFF" + sizes[0] + b"WAVEfmt " + form + b"data" + sizes[1] + data


def paint():
    emit("log", level="info", message="mixing", fields={"progress": 0.5})
    emit("state_patch", patch={"bench": {"picture": "wet", "tidy": False}})
    asset("dusk.png", "image", "image/png", png(320, 180), title="Dusk over the yard", width=320, height=180)
    asset("bell.wav", "audio", "audio/wav", wav(), title="The bell")
    asset("sign.svg", "image", "image/svg+xml", SIGN, title="A sign")
    asset("page.html", "document", "text/html", b"<script>parent.hacked=1</script>", title="A page")
    choices("Look closer", "Hang it up")
    done("It is good enough.")


def wait():
    emit("log", level="info", message="the rope hangs still")
    emit("state_patch", patch={"bell": {"rung": True}})
    (HOME / "gate").read_text()  # a pipe: opens when the test writes to it
    choices("Listen", "Wait for the bell")
    done("The bell rings.")


def break_it():
    sys.stderr.write("the jaw is cracked\n")
    emit("error", errorCode="VICE_BROKEN", errorMessage="The vice gives way " + HOSTILE)
    done("It is broken.", ok=False)


def shake():
    emit("ui_event", event="camera_shake", payload={"strength": 0.4, "note": HOSTILE})
    done("Dust falls.")


def chatter():
    for number in range(int((HOME / "lines").read_text())):
        emit("log", level="warn" if number % 100 == 0 else "info", message=f"line {number}")
    done("It falls silent.")


def hostile():
    emit("log", level="info", message=HOSTILE, fields={HOSTILE: HOSTILE})
    emit("state_patch", patch={HOSTILE: {HOSTILE: HOSTILE}})
    asset("odd.bin", HOSTILE, "application/x-odd", b"odd", title=HOSTILE, caption=HOSTILE)
    emit("ui_event", event=HOSTILE, payload={HOSTILE: HOSTILE})
    choices(HOSTILE)
    done(HOSTILE)


def lengthen():
    choices("Lengthen", "Finish")
    done("So it goes.")


def forge():
    asset("deed.png", "image", "image/png", b"<html>no picture</html>", title="The deed")
    done("Nobody would believe it.")


def siren():
    done("The guard is called.")


def lamp():
    (HOME / "lamp").touch()
    done("It burns.")


def douse():
    (HOME / "lamp").unlink()
    emit("state_patch", patch={"smoke": True})
    done("It is dark.")


def sign():
    emit("state_patch", patch={"signed": True})
    done("The ink is wet.")


def doubt():
    done("The bench isn't tidy.")


def finish():
    emit("state_patch", patch={"ending": {"id": "done", "title": "A tidy bench"}})
    done("The End.")


if __name__ == "__main__":
    what = json.load(sys.stdin)["input"]["what"]
    {"break": break_it}.get(what, globals().get(what))()
