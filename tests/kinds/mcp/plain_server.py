"""An MCP server without any package, which starts at once, with the tools of `trial_server.py` for bad ends."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

LISTED = {  # the tools and what they take; those that only read come with a mark
    "echo*": {"text": "string"},
    "pid*": {},
    "environ*": {"name": "string"},
    "long_description*": {},
    "slow*": {"seconds": "number"},
    "flood*": {"megabytes": "integer"},
    "write": {"path": "string", "text": "string"},
    "remove": {"path": "string"},
    "hang": {},
    "die": {"status": "integer"},
    "bear": {},
    "grow": {},
}
writing = threading.Lock()


def send(**message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def described(name, takes):
    properties = {key: {"type": kind} for key, kind in takes.items()}
    about = {"name": name.rstrip("*"), "description": f"Does {name.rstrip('*')}."}
    schema = {"type": "object", "properties": properties}
    return {**about, "inputSchema": schema, "annotations": {"readOnlyHint": name.endswith("*")}}


def slow(asked, seconds):
    token = asked["params"].get("_meta", {}).get("progressToken")
    for step in range(1, 5):
        if token is not None:
            told = {"progressToken": token, "progress": step, "total": 4, "message": f"step {step}"}
            send(method="notifications/progress", params=told)
        time.sleep(seconds / 4)
    return "slept"


def call(asked):
    name, given = asked["params"]["name"], asked["params"].get("arguments", {})
    result = act(asked, name, given)
    content = [{"type": "text", "text": str(result)}]
    send(id=asked["id"], result={"content": content, "structuredContent": {"result": result}})


def act(asked, name, given):
    if name == "echo":
        return given["text"]
    if name == "pid":
        return os.getpid()
    if name == "environ":
        return os.environ.get(given["name"], "(unset)")
    if name == "slow":
        return slow(asked, given["seconds"])
    if name == "flood":
        for _ in range(given.get("megabytes", 8) * 16):
            os.write(2, b"x" * 65535 + b"\n")
        return "flooded"
    if name == "write":
        Path(given["path"]).write_text(given["text"])
        return f"wrote {given['path']}"
    if name == "remove":
        Path(given["path"]).unlink()
        return f"removed {given['path']}"
    if name == "hang":
        time.sleep(600)
    if name == "die":
        print("the server ran into a wall", file=sys.stderr, flush=True)
        os._exit(given.get("status", 3))
    if name == "bear":
        return subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL).pid
    if name == "grow":
        LISTED["grown*"] = {}
        del LISTED["long_description*"]
        send(method="notifications/tools/list_changed")
        return "grew"
    return {"long_description": "long", "grown": "I am new"}[name]


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        method = asked.get("method")
        if method == "initialize":
            about = {"name": "trial", "version": "1"}
            able = {"tools": {"listChanged": True}}
            result = {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": about}
            send(id=asked["id"], result=result)
        elif method == "tools/list":
            send(id=asked["id"], result={"tools": [described(*one) for one in LISTED.items()]})
        elif method == "ping":
            send(id=asked["id"], result={})
        elif method == "tools/call" and asked["params"]["name"] == "slow":  # others are answered meanwhile
            threading.Thread(target=call, args=(asked,), daemon=True).start()
        elif method == "tools/call":
            call(asked)
        elif "id" in asked:
            send(id=asked["id"], error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    if "--broken" in sys.argv:
        print(f"cannot start: no license {os.environ.get('LICENSE_KEY', '')}", file=sys.stderr)
        sys.exit(7)
    main()
