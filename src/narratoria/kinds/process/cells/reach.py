"""The paths that a tool in a cell may reach: the system's programs, its own folder, its scratch folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
)  # fmt: skip
"""Folders of programs and libraries."""
SETTINGS: Final = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
    "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf", "/etc/default/locale", "/etc/passwd",
    "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/mime.types", "/etc/magic", "/etc/fonts",
    "/etc/ssl/openssl.cnf", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/ca-certificates", "/etc/bash.bashrc",
    "/etc/inputrc", "/etc/terminfo", "/etc/perl", "/etc/ImageMagick-6", "/etc/ImageMagick-7",
)  # fmt: skip
"""Settings that programs read and that are no secrets; the rest of /etc is closed."""
NETWORK: Final = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/services", "/etc/protocols", "/etc/gai.conf",
    "/run/systemd/resolve",
)  # fmt: skip
MACHINE: Final = (
    "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version",
    "/proc/filesystems", "/proc/sys", "/sys/devices/system", "/dev/urandom", "/dev/random",
)  # fmt: skip
"""Facts about the machine. Nothing of any process is among them, not even of the tool's own."""
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")
LIBRARIES: Final = (
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "NODE_PATH",
    "PERL5LIB",
    "RUBYLIB",
    "GEM_HOME",
    "GEM_PATH",
)
_BESIDE_BIN: Final = ("lib", "lib64", "libexec")
_SHEBANG_BYTES: Final = 256


def paths(
    command: Sequence[str],
    folders: Iterable[Path],
    scratch: str,
    env: Mapping[bytes, bytes],
    *,
    network: bool,
) -> dict[str, list[str]]:
    """Return the paths that a command may reach, by right; `folders` are those it may read beside the system's.

    `env` is the person's environment, not the tool's: what a manifest puts into `PATH` opens nothing.
    """
    run = {*SYSTEM, *_programs(command, env), *map(str, folders)}
    read = {*SETTINGS, *MACHINE, *(NETWORK if network else ())}
    return {"run": sorted(run), "read": sorted(read), "device": list(DEVICES), "write": [scratch]}


def own_folder(tool: Path) -> Path:
    """Return what a tool outside of any story may read: its folder; the file alone, if everything lies in that."""
    folder = tool.resolve().parent
    return tool.resolve() if is_broad(folder) else folder


def _programs(command: Sequence[str], env: Mapping[bytes, bytes]) -> Iterator[str]:
    """Yield the places of the programs and libraries that a command needs outside the system's own."""
    path = os.fsdecode(env.get(b"PATH", b""))
    places = [Path(folder) for folder in filter(os.path.isabs, path.split(os.pathsep))]
    places += [Path(prefix, "bin") for prefix in dict.fromkeys([sys.prefix, sys.base_prefix])]
    for folder in places:
        yield from _around_bin(folder)
    for name in LIBRARIES:
        for one in filter(os.path.isabs, os.fsdecode(env.get(name.encode(), b"")).split(os.pathsep)):
            if not is_broad(Path(one).resolve()):
                yield one
    yield str(Path(sys.prefix, "pyvenv.cfg"))
    package = Path(__file__).resolve().parents[3]  # a tool in Python may use `narratoria.sdk`
    yield str(package.parent if package.parent.name == "src" else package)
    for program in _interpreters(command, path):
        if Path(program).parent not in places:
            continue  # a tool's first line may name any file: only those count that the person could call by name
        real = Path(program).resolve()
        yield from _around_bin(real.parent)
        if _shebang(real) and not is_broad(real.parent.parent):
            yield str(real.parent.parent)  # the shim of a version manager, which runs what lies beside it


def _around_bin(folder: Path) -> Iterator[str]:
    """Yield a folder of programs and the libraries beside it."""
    if is_broad(folder):
        return
    yield str(folder)
    if folder.name in ("bin", "sbin"):
        yield from (str(folder.parent / name) for name in _BESIDE_BIN)


def _interpreters(command: Sequence[str], path: str) -> Iterator[str]:
    """Yield the programs that run a tool: the first of its command, or the one that its own first line names."""
    if len(command) > 1:
        yield command[0]
    words = _shebang(Path(command[0]))
    if not words:
        return
    if Path(words[0]).name == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        words = [found] if named and (found := shutil.which(named[0], path=path or None)) else words
    yield words[0]


def _shebang(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            head = file.read(_SHEBANG_BYTES)
    except OSError:
        return []
    return os.fsdecode(head[2:].split(b"\n", 1)[0]).split() if head.startswith(b"#!") else []


def is_broad(folder: Path) -> bool:
    """Tell if a folder holds, beside what is meant, everything else of a person or of the system."""
    return folder in _broad()


@cache
def _broad() -> frozenset[Path]:
    homes = {Path.home().resolve()}
    with contextlib.suppress(KeyError):  # a user without an entry
        homes.add(Path(pwd.getpwuid(os.getuid()).pw_dir).resolve())
    above = {parent for home in homes for parent in home.parents}
    return frozenset({*homes, *above, Path("/"), Path("/tmp"), Path("/var/tmp")})  # noqa: S108
