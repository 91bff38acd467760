"""The seccomp filter: system calls that a tool in a cell is refused, as a BPF program.

A cell loads this file by its path, without the package around it: only the standard library here, and only fast
imports.
"""

from __future__ import annotations

import errno
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# By machine: the kernel's number for it, and its calls by name. Calls that a machine lacks are left out.
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_ANYWHERE = {
    "pidfd_getfd": 438, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
    "quotactl_fd": 443, "clone3": 435, "process_madvise": 440, "process_mrelease": 448, "fchmodat2": 452,
    "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip
_NAMES = """
    ptrace process_vm_readv process_vm_writev kcmp bpf perf_event_open userfaultfd keyctl add_key request_key mount
    umount2 pivot_root chroot swapon swapoff reboot kexec_load kexec_file_load init_module finit_module
    delete_module setns unshare open_by_handle_at quotactl acct settimeofday clock_settime adjtimex clock_adjtime
    iopl ioperm vhangup syslog sethostname setdomainname chmod fchmodat chown lchown fchownat setxattr lsetxattr
    removexattr lremovexattr utime utimes futimesat utimensat truncate inotify_add_watch fanotify_init fanotify_mark
    shmget shmat msgget semget mq_open mq_unlink clone socket prlimit64 sched_setaffinity sched_setscheduler
    sched_setparam sched_setattr setpriority ioprio_set migrate_pages move_pages setrlimit
""".split()  # noqa: SIM905 - a list would take a line a name
_NUMBERS = {
    "x86_64": (
        101, 310, 311, 312, 321, 298, 323, 250, 248, 249, 165, 166, 155, 161, 167, 168, 169, 246, 320, 175, 313, 176,
        308, 272, 304, 179, 163, 164, 227, 159, 305, 172, 173, 153, 103, 170, 171, 90, 268, 92, 94, 260, 188, 189,
        197, 198, 132, 235, 261, 280, 76, 254, 300, 301, 29, 30, 68, 64, 240, 241, 56, 41, 302, 203, 144, 142, 314,
        141, 251, 256, 279, 160,
    ),
    "aarch64": (
        117, 270, 271, 272, 280, 241, 282, 219, 217, 218, 40, 39, 41, 51, 224, 225, 142, 104, 294, 105, 273, 106, 268,
        97, 265, 60, 89, 170, 112, 171, 266, None, None, 58, 116, 161, 162, None, 53, None, None, 54, 5, 6, 14, 15,
        None, None, None, 88, 45, 27, 262, 263, 194, 196, 186, 190, 180, 181, 220, 198, 261, 122, 119, 118, 274, 140,
        30, 238, 239, 164,
    ),
}  # fmt: skip

_NAMESPACES = 0x02000000 | 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_INTERNET = (2, 10, 16)  # AF_INET, AF_INET6, AF_NETLINK, by which the C library looks up addresses
# Of these the first argument that names a process must be 0, the caller itself; the number is that of the argument.
_OF_ONESELF = {
    "prlimit64": 0, "sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0,
    "setpriority": 1, "ioprio_set": 1, "migrate_pages": 0, "move_pages": 0,
}  # fmt: skip
_BY_ARGUMENT = {*_OF_ONESELF, "clone", "clone3", "socket", "utimensat", "truncate", "setrlimit"}
_RLIMIT_LOCKS = 10  # the mark by which we find what belongs to a tool (`marks.py`)

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16


def calls_of(machine: str) -> dict[str, int]:
    """Return the numbers of the system calls by name; none for a machine that is not known."""
    numbers = _NUMBERS.get(machine)
    if numbers is None:
        return {}
    return _ANYWHERE | {
        name: number for name, number in zip(_NAMES, numbers, strict=True) if number is not None
    }


def program(machine: str, *, network: bool, truncates: bool) -> bytes:
    """Return the filter. `truncates` lets through the truncation of a file by its name, where Landlock judges it."""
    calls = calls_of(machine)
    code = [_statement(_LOAD, _ARCH), *_unless(_JUMP_EQUAL, ARCHES[machine], errno.ENOSYS)]
    code.append(_statement(_LOAD, _NUMBER))
    if machine == "x86_64":  # the x32 calls have other numbers, and go round every rule below
        code += _if(_JUMP_GREATER_EQUAL, _X32, errno.ENOSYS)
    for name, number in calls.items():
        if name not in _BY_ARGUMENT:
            code += _if(_JUMP_EQUAL, number, errno.EPERM)
    code += _if(
        _JUMP_EQUAL, calls["clone3"], errno.ENOSYS
    )  # its flags lie in memory; libraries then use clone
    if not truncates:
        code += _if(_JUMP_EQUAL, calls["truncate"], errno.EPERM)
    for name, argument in _OF_ONESELF.items():
        rule = [_statement(_LOAD, _low(argument)), *_unless(_JUMP_EQUAL, 0, errno.EPERM)]
        if name == "prlimit64":
            rule += [_statement(_LOAD, _low(1)), *_if(_JUMP_EQUAL, _RLIMIT_LOCKS, errno.EPERM)]
        code += _for_call(calls[name], rule)
    code += _for_call(
        calls["setrlimit"], [_statement(_LOAD, _low(0)), *_if(_JUMP_EQUAL, _RLIMIT_LOCKS, errno.EPERM)]
    )
    code += _for_call(
        calls["clone"], [_statement(_LOAD, _low(0)), *_if(_JUMP_BITS, _NAMESPACES, errno.EPERM)]
    )
    # Without a path it is the times of an open file, which Landlock has judged.
    code += _for_call(
        calls["utimensat"],
        [
            part
            for half in (0, 4)
            for part in (_statement(_LOAD, _low(1) + half), *_unless(_JUMP_EQUAL, 0, errno.EPERM))
        ],
    )
    code += _for_call(calls["socket"], list(_socket(network)))
    code.append(_statement(_RETURN, _ALLOW))
    return b"".join(code)


def _socket(network: bool) -> Iterator[bytes]:
    if network:
        yield _statement(_LOAD, _low(0))
        for family in _INTERNET:
            yield _jump(_JUMP_EQUAL, family, 0, 1)
            yield _statement(_RETURN, _ALLOW)
    yield _statement(_RETURN, _ERRNO | errno.EACCES)


def _for_call(number: int, rule: list[bytes]) -> list[bytes]:
    """Return a rule that is passed over for every other call; after it, what was loaded is the number again."""
    return [_jump(_JUMP_EQUAL, number, 0, len(rule) + 1), *rule, _statement(_RETURN, _ALLOW)]


def _if(test: int, value: int, refusal: int) -> list[bytes]:
    return [_jump(test, value, 0, 1), _statement(_RETURN, _ERRNO | refusal)]


def _unless(test: int, value: int, refusal: int) -> list[bytes]:
    return [_jump(test, value, 1, 0), _statement(_RETURN, _ERRNO | refusal)]


def _statement(code: int, value: int) -> bytes:
    return _jump(code, value, 0, 0)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _low(argument: int) -> int:
    """Return the place of an argument's lower half; both machines are little-endian."""
    return _ARGUMENTS + 8 * argument
