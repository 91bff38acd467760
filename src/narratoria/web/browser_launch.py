"""Opening the player's browser without showing the token to others.

A command line can be read by everybody on a machine, and a browser's holds the address it was started with. So the
browser is sent to a file only its owner may read, which sends it on.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import secrets
import threading
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from narratoria.session.private_files import make_file, make_folder

_NAME: Final = re.compile(r"open-[0-9a-f]{16}\.html")


def has_display() -> bool:
    """Tell if there is a desktop: without one `webbrowser` would start a text browser in this terminal."""
    return os.uname().sysname == "Darwin" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def is_in_windows() -> bool:
    """Tell if this is WSL, where the browser is another system's, which knows no path of ours."""
    return "microsoft" in os.uname().release.lower()


@contextlib.contextmanager
def signpost(home: Path, address: str) -> Iterator[str]:
    """Make a file that redirects to `address`, and yield its address; the file is removed when the block ends."""
    if is_in_windows():
        yield address
        return
    make_folder(home)
    file = home / f"open-{secrets.token_hex(8)}.html"
    make_file(file)
    try:
        file.write_text(page(address), encoding="utf-8")
        yield file.resolve().as_uri()
    finally:
        file.unlink(missing_ok=True)


def page(address: str) -> str:
    to = html.escape(address, quote=True)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Narratoria</title>'
        '<meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={to}"></head>'
        f'<body><p><a href="{to}">To the story</a></p></body></html>'
    )


def clear_signposts(home: Path, seconds: float) -> None:
    """Remove the files of servers that were killed; those younger than `seconds` may be another server's."""
    with contextlib.suppress(OSError):
        for file in home.iterdir():
            if _NAME.fullmatch(file.name) and file.lstat().st_mtime < time.time() - seconds:
                file.unlink(missing_ok=True)


def open_browser(address: str) -> None:
    """Start the browser, if there is one. Nobody waits for it: some commands stay until the browser is closed."""
    threading.Thread(target=webbrowser.open, args=(address,), name="browser", daemon=True).start()
