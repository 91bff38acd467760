"""The number of cores this process may use, which may be fewer than the machine has."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return the cores of this process's affinity mask, or of its control group's quota, if that is less."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every system
        cores = os.cpu_count() or 1
    quota = cgroup_quota(_CGROUPS, _OWN)
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


@cache
def cgroup_quota(root: Path, own: Path) -> float | None:
    """Return the tightest quota, in cores, of the control groups this process is in (version 2 or 1); None without
    one.
    """
    quotas = [read(folder) for folder, read in _folders(root, own)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _folders(root: Path, own: Path) -> Iterator[tuple[Path, Callable[[Path], float | None]]]:
    try:
        lines = own.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            base, read = root, _version_2
        elif "cpu" in controllers.split(","):
            base, read = root / "cpu", _version_1
        else:
            continue
        inside = base / path.lstrip("/")
        # Inside a container the path may be the host's; what is mounted is then the group itself.
        for folder in (inside, *inside.parents):
            if not folder.is_relative_to(base):
                break
            yield folder, read


def _version_2(folder: Path) -> float | None:
    numbers = _numbers(folder / "cpu.max")
    return numbers[0] / numbers[1] if len(numbers) == 2 and numbers[1] > 0 else None


def _version_1(folder: Path) -> float | None:
    quota, period = _numbers(folder / "cpu.cfs_quota_us"), _numbers(folder / "cpu.cfs_period_us")
    return quota[0] / period[0] if quota and period and quota[0] > 0 and period[0] > 0 else None


def _numbers(file: Path) -> list[float]:
    """The numbers in a file; none where it cannot be read or says `max`."""
    try:
        return [float(word) for word in file.read_text().split()]
    except (OSError, ValueError):
        return []
