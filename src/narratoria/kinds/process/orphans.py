"""Adoption of orphans, processes whose parents have ended, where the system has child subreapers (Linux).

A daemon that has dropped both of its marks (`marks.py`) can then still be recognised: it is a child of ours that we
did not start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from narratoria.kinds.process import marks

_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> bool:
    """Become the parent of our orphaned descendants; return False if the system has no subreapers."""
    if not marks.LINUX:
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def children() -> Iterator[int]:
    """The children of this process, those that we started included."""
    try:
        threads = os.listdir("/proc/self/task")  # noqa: PTH208
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/self/task/{thread}/children", "rb") as file:  # noqa: PTH123
                yield from map(int, file.read().split())
        except OSError:
            continue  # the thread has ended, or the kernel was built without this file
