"""A command that is asked to end ends, also where its loop stalls or a thread of it is stuck."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

STUCK = """
import asyncio, sys, time
from narratoria.cli.signals import install_signals

def stall():
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pass

async def command():
    print("ready", flush=True)
    if sys.argv[1] == "loop":
        stall()
    await asyncio.to_thread(time.sleep, 60)

install_signals(["run"])
asyncio.run(command())
"""

SERVER = """
import asyncio, time
from narratoria.web.connections import Connections, Limits
from narratoria.web.listening import HttpServer, listen

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
            print("ready", flush=True)
            asyncio.get_running_loop().call_later(0.2, time.sleep, 60)

asyncio.run(HttpServer(app, Connections(Limits.of_this_process())).serve([listen("127.0.0.1", 0, "")]))
"""


ENDED = (
    "import time; from narratoria.kinds.process.ending import end_within; end_within(0.1, 7); time.sleep(30)"
)


def test_it_ends_also_where_nobody_reads_what_it_says() -> None:
    gone, full = os.pipe(), os.pipe()
    os.close(gone[0])
    os.set_blocking(full[1], False)
    os.write(full[1], bytes(1 << 20))
    os.set_blocking(full[1], True)
    ending = [subprocess.Popen([sys.executable, "-c", ENDED], stderr=pipe[1]) for pipe in (gone, full)]
    try:
        assert [one.wait(timeout=20) for one in ending] == [7, 7]
    finally:
        for one in ending:
            one.kill()
        for number in (gone[1], *full):
            os.close(number)


def test_a_stuck_command_ends_soon_after_a_term() -> None:
    programs = [(STUCK, "loop"), (STUCK, "thread"), (SERVER,)]  # all at once: each takes some seconds
    stuck = [
        subprocess.Popen([sys.executable, "-c", *one], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for one in programs
    ]
    try:
        for one in stuck:
            assert one.stdout is not None
            assert one.stdout.readline() == b"ready\n"
        time.sleep(0.5)  # they are stuck now
        for one in stuck:
            one.send_signal(signal.SIGTERM)
        ends = [one.communicate(timeout=20)[1] for one in stuck]
    finally:
        for one in stuck:
            one.kill()
    assert [one.returncode for one in stuck] == [128 + signal.SIGTERM] * 3
    assert all(b"did not end when asked to" in err for err in ends)
