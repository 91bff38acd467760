"""`warm_command.py NAME ARGUMENTS…`: start `narratoria` warm, and be it: its streams, its signals, its exit code.

See `warm_start`, which listens at the name. Whoever kills this has the command killed a moment later.
"""

import json
import os
import signal
import socket
import struct
import sys

link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)
link.connect(f"\0{sys.argv[1]}")
message = {"arguments": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}  # noqa: PTH109 - pathlib takes longer than all of this
socket.send_fds(link, [json.dumps(message).encode()], [0, 1, 2])
(pid,) = struct.unpack("q", link.recv(8))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
for fd in range(3):  # whoever waits for the end of a stream waits for the command alone
    os.close(fd)
code = os.waitstatus_to_exitcode(struct.unpack("q", link.recv(8))[0])
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
