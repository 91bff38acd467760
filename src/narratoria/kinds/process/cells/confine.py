"""The walls that a process puts up around itself, for good: Landlock, seccomp, limits and no privileges.

Whatever it starts inherits them. Each wall that the system does not have is told, with the reason.

A cell loads this file by its path, without the package around it: only the standard library here, and only fast
imports.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 4, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_KEPT_CAPABILITIES = (1, 3)  # DAC_OVERRIDE, FOWNER: root reads and writes, inside the walls, what it could
_CAPABILITY_VERSION = 0x20080522
_HIGHEST_CAPABILITY = 63

# Rights of Landlock on files.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1  # abstract sockets and signals

_READ = _READ_FILE | _READ_DIR
_RIGHTS = {
    "read": _READ,
    "run": _READ | _EXECUTE,
    "write": (_IOCTL_DEV - 1) & ~(_MAKE_CHAR | _MAKE_BLOCK),
    "device": _READ_FILE | _WRITE_FILE | _TRUNCATE,
}

_libc = ctypes.CDLL(None, use_errno=True)


class Report:
    """The walls that hold, by what, and those that are missing, with the reason."""

    def __init__(self) -> None:
        self.holds: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    def lack(self, wall: str, reason: str) -> None:
        self.missing.setdefault(wall, reason)


def confine(spec: dict[str, Any], filters: Any) -> Report:
    """Put up the walls of `spec` around this process. `filters` is the module of that name.

    The keys of `spec`: `paths`, lists of paths by right (`read`, `run`, `write`, `device`), `network`, and the limits
    `memory`, `cpu`, `file_size`, `open_files` and `processes`; `counted` names the controllers of our cgroup.
    """
    report = Report()
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what a tool leaves behind becomes our child
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody inside looks into this process
    _limit(spec, report)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        report.lack("privileges", f"no_new_privs: {_error()}")
    abi = _landlock(spec, report)
    _drop_capabilities(report)
    _seccomp(spec, filters, abi, report)
    return report


def landlock_abi() -> int:
    """Return the version of Landlock here; 0 if there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def _error() -> str:
    number = ctypes.get_errno()
    return errno.errorcode.get(number, str(number))


# --- files and signals ---------------------------------------------------------------------------------


def _landlock(spec: dict[str, Any], report: Report) -> int:
    abi = landlock_abi()
    if abi < 1:
        report.lack(
            "files", f"no Landlock in this kernel ({_error()}); it needs Linux 5.13 with landlock in its LSMs"
        )
        report.lack("signals", "no Landlock in this kernel")
        return 0
    handled = (1 << 13) - 1
    handled |= (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL_DEV if abi >= 5 else 0)
    network = _TCP if abi >= 4 and not spec["network"] else 0
    scoped = _SCOPES if abi >= 6 else 0
    attributes = struct.pack("=QQQ", handled, network, scoped)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = int(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    if ruleset < 0:
        report.lack("files", f"Landlock makes no ruleset: {_error()}")
        report.lack("signals", "Landlock makes no ruleset")
        return 0
    try:
        for right, paths in spec["paths"].items():
            for path in paths:
                _allow(ruleset, path, _RIGHTS[right] & handled, report)
        if _libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            report.lack("files", f"Landlock does not restrict this process: {_error()}")
            report.lack("signals", "Landlock does not restrict this process")
            return 0
    finally:
        os.close(ruleset)
    report.holds["files"] = f"Landlock, version {abi}"
    if scoped:
        report.holds["signals"] = "Landlock"
    else:
        report.lack("signals", f"Landlock has version {abi}, and holds signals from 6 on (Linux 6.12)")
    return abi


def _allow(ruleset: int, path: str, rights: int, report: Report) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not there, or not for us: nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, fd)
        if rights and _libc.syscall(_ADD_RULE, ruleset, 1, rule, 0) != 0:
            report.lack("files", f"Landlock takes no rule for {path}: {_error()}")
    finally:
        os.close(fd)


# --- system calls --------------------------------------------------------------------------------------


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _seccomp(spec: dict[str, Any], filters: Any, abi: int, report: Report) -> None:
    machine = os.uname().machine
    if machine not in filters.ARCHES:
        for wall in ("network", "system calls"):
            report.lack(wall, f"the filter is not written for {machine}")
        return
    code = filters.program(machine, network=spec["network"], truncates=abi >= 3)
    program = _Program(len(code) // 8, code)
    if _libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0) != 0:
        for wall in ("network", "system calls"):
            report.lack(wall, f"seccomp takes no filter: {_error()}")
        return
    report.holds["system calls"] = "seccomp"
    report.holds["network"] = (
        "open, as it asked" if spec["network"] else "seccomp" + (" and Landlock" if abi >= 4 else "")
    )


# --- privileges and limits -----------------------------------------------------------------------------


def _drop_capabilities(report: Report) -> None:
    """Drop root's capabilities, also for programs that are executed later; others have none, and cannot get any."""
    _libc.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0)
    refused = ""
    for number in range(_HIGHEST_CAPABILITY + 1):
        if number not in _KEPT_CAPABILITIES and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            if ctypes.get_errno() == errno.EINVAL:
                break  # there are no more
            refused = _error()
    kept = sum(1 << number for number in _KEPT_CAPABILITIES)
    header, data = struct.pack("=Ii", _CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    if _libc.capget(header, data) == 0:
        effective, permitted, *_ = struct.unpack("=IIIIII", data.raw)
        if _libc.capset(header, struct.pack("=IIIIII", effective & kept, permitted & kept, 0, 0, 0, 0)) != 0:
            report.lack("privileges", f"capabilities cannot be dropped: {_error()}")
    if refused and os.geteuid() == 0:
        report.lack("privileges", f"root's capabilities cannot be dropped for good: {refused}")
    if "privileges" not in report.missing:
        report.holds["privileges"] = "no_new_privs" + (", few capabilities" if os.geteuid() == 0 else "")


def _limit(spec: dict[str, Any], report: Report) -> None:
    limits = {
        "memory": (resource.RLIMIT_DATA, spec["memory"]),
        "cpu": (resource.RLIMIT_CPU, spec["cpu"]),
        "file size": (resource.RLIMIT_FSIZE, spec["file_size"]),
        "open files": (resource.RLIMIT_NOFILE, spec["open_files"]),
        "core dumps": (resource.RLIMIT_CORE, 0),
    }
    if "pids" in spec["counted"]:
        report.holds["processes"] = "a cgroup"
    elif os.geteuid() == 0:
        report.lack("processes", "root is counted by a cgroup alone, and none can be made here")
    else:
        limits["processes"] = (resource.RLIMIT_NPROC, spec["processes"] + _tasks())
    for wall, (which, value) in limits.items():
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(which, (value, value))
        except (OSError, ValueError) as error:
            report.lack(wall, f"the limit cannot be set: {error}")
        else:
            if wall not in ("open files", "core dumps"):
                report.holds[wall] = (
                    "a limit on each process" if wall != "processes" else "a limit on your processes"
                )
    if "memory" in spec["counted"] and "memory" in report.holds:
        report.holds["memory"] += ", a cgroup on all"


def _tasks() -> int:
    """Return the number of processes and threads of the system: a user's limit counts what else the user runs."""
    try:
        with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 4096
