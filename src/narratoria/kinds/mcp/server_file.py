"""The `mcpServers` JSON that MCP hosts share, read unchanged, and the keys of our own in it.

A server is a program (`command`, `args`, `env`, `cwd`) or an address (`url`, `headers`). `${VAR}` and `${VAR:-default}`
stand for variables of the environment. Comments are read over. Keys of other hosts are ignored; ours are under
`narratoria`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from narratoria import bounds
from narratoria.errors import NarratoriaError, ToolValidationError
from narratoria.kinds.foreign_names import our_names
from narratoria.kinds.foreign_tool import ToolSettings
from narratoria.kinds.mcp.json_with_comments import decode_with_comments
from narratoria.kinds.redaction import (
    Redaction,
    is_secret_name,
    secrets_in,
    secrets_of_url,
    secrets_within,
    shown_url,
)
from narratoria.tools import schema
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_seconds
from narratoria.tools.schema.excerpts import excerpt

START_TIMEOUT: Final = 60.0  # a first `npx` or `uvx` downloads the server
MOST_SERVERS: Final = 100
_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_TRANSPORTS: Final = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http",
    "streamable_http": "http", "remote": "http", "sse": "sse",
}  # fmt: skip
_ADDRESS_KEYS: Final = ("url", "serverUrl", "httpUrl")  # the second and third are other hosts' own

Transport = Literal["stdio", "http", "sse"]


class ServersInvalid(NarratoriaError):
    """A file of servers cannot be used; the message names the file and the key."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The key `narratoria` of a server: times in seconds, and settings of its tools by their own names."""

    start_timeout: float = START_TIMEOUT
    timeout: float | None = None
    permissions: list[str] = msgspec.field(default_factory=list)
    tools: dict[str, ToolSettings] = msgspec.field(default_factory=dict)
    only: list[str] | None = None
    """The only tools to take, by their own names; None takes all."""


_parse_settings: Any = schema.parser_for(ServerSettings)


@dataclass(frozen=True)
class McpServer:
    """One server: how it is reached, and the settings of its tools. Its secrets are in no `repr`."""

    name: str
    label: str
    """The name it has in the file."""
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    settings: ServerSettings = field(default_factory=ServerSettings)
    redaction: Redaction = field(default_factory=Redaction)
    story: Path | None = None
    """The folder of the story that names it, if that is not one of ours: its program runs in the story's sandbox."""

    @property
    def where(self) -> str:
        """The server in words: its command line or its address, without secrets."""
        if self.transport != "stdio":
            return self.redaction.text(shown_url(self.url))
        return self.redaction.text(" ".join([self.command, *self.args]))


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The servers of a file, and the reasons why some of it is not used, by the server's name."""

    servers: tuple[McpServer, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The names of the servers, those that cannot be used included."""
        return {server.name for server in self.servers} | self.problems.keys()

    @property
    def declares_effects(self) -> bool:
        """Tell if effects, which may have a rollback, are declared for any tool."""
        return any(one.effects for server in self.servers for one in server.settings.tools.values())


def read_server_file(
    path: Path | str, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> ServerFile:
    """Read a file of servers. Programs without a `cwd` run in the one given, else in the present folder, as other hosts
    run them.
    """
    path = Path(path)
    try:
        data = decode_with_comments(bounds.read_file(path))
    except OSError as error:
        raise ServersInvalid(f"{path}: cannot be read: {error.strerror or error}") from None
    except bounds.DocumentFault as error:
        raise ServersInvalid(error.at(path)) from None
    return servers_from_data(data, where=str(path), folder=path.absolute().parent, cwd=cwd, env=env)


def joined(files: Iterable[ServerFile]) -> ServerFile:
    """Return the servers of several files as one; of two with one name, the first."""
    servers: dict[str, McpServer] = {}
    problems: dict[str, str] = {}
    for file in files:
        for server in file.servers:
            if server.name in servers:
                problems[f"{server.name} ({server.where})"] = (
                    f"another server is named {server.name!r} already"
                )
            else:
                servers[server.name] = server
        problems.update({name: why for name, why in file.problems.items() if name not in problems})
    return ServerFile(tuple(servers.values()), problems)


def servers_from_data(
    data: Any,
    *,
    where: str = "mcpServers",
    folder: Path | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> ServerFile:
    """Read servers from data: `{"mcpServers": {…}}`, or the servers by name alone.

    `folder` is where `${workspaceFolder}` and `envFile` are looked for; `cwd` is where programs without one of their
    own run. A server that cannot be used is a problem and hides no other.
    """
    entries = _entries(data, where)
    names = our_names(list(entries))
    servers, problems = [], {}
    for label, entry in entries.items():
        name = names[label]
        try:
            if not isinstance(entry, Mapping):
                expected = 'expected a server, {"command": "…"} or {"url": "…"}'
                raise ServersInvalid(f"{where}: {label!r}: {expected}, got {excerpt(repr(entry))}")
            if entry.get("disabled") is True or entry.get("enabled") is False:
                continue
            servers.append(
                _Entry(label, entry, f"{where}: {label}", folder, env or os.environ).read(name, cwd)
            )
        except (ServersInvalid, ToolValidationError) as error:
            problems[name] = str(error)
    return ServerFile(tuple(servers), problems)


def _entries(data: Any, where: str) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        for key in (
            "mcpServers",
            "servers",
            "mcp",
            "context_servers",
        ):  # all but the first are other hosts' own
            if isinstance(inner := data.get(key), Mapping) and "command" not in inner:
                data = inner.get("servers", inner) if key == "mcp" else inner
                break
    if not isinstance(data, Mapping) or (data and not any(isinstance(one, Mapping) for one in data.values())):
        raise ServersInvalid(f'{where}: expected {{"mcpServers": {{"NAME": {{"command": "…"}}}}}}')
    if len(data) > MOST_SERVERS:
        raise ServersInvalid(f"{where}: {len(data)} servers, more than {MOST_SERVERS}")
    return data


class _Entry:
    """One server of a file, key by key, with its variables filled in."""

    def __init__(
        self, label: str, entry: Any, where: str, folder: Path | None, env: Mapping[str, str]
    ) -> None:
        self.label = label
        self.entry: Mapping[str, Any] = entry
        self.where = where
        self.folder = folder
        self.env = env
        self.secrets: set[str] = set()

    def read(self, name: str, cwd: Path | None) -> McpServer:
        address = next((key for key in _ADDRESS_KEYS if isinstance(self.entry.get(key), str)), None)
        transport = self._transport(address)
        if transport == "stdio":
            self._split_command()
            reached: dict[str, Any] = {
                "command": self._text("command"),
                "args": self._args(),
                "env": self._pairs("env", secret=is_secret_name)
                | self._pairs("environment", secret=is_secret_name),  # another host's own
                "cwd": self._cwd(cwd),
            }
        else:
            url = self._text(address or "url")
            self.secrets.update(secrets_of_url(url))
            if not url.startswith(("http://", "https://")):
                raise self.wrong(address or "url", "expected an address that begins with http:// or https://")
            reached = {"url": url, "headers": self._pairs("headers", secret=lambda name: True)}
        return McpServer(
            name,
            self.label,
            transport,
            **reached,
            settings=self._settings(),
            redaction=Redaction(self.secrets),
        )

    def _split_command(self) -> None:
        """Take apart a command that is a list of a program and its arguments, as one host writes it."""
        command = self.entry.get("command")
        if isinstance(command, list) and command:
            self.entry = {**self.entry, "command": command[0], "args": command[1:]}

    def wrong(self, key: str, problem: str) -> ServersInvalid:
        return ServersInvalid(f"{self.where}: key {key!r}: {problem}")

    def _transport(self, address: str | None) -> Transport:
        named = self.entry.get("type", self.entry.get("transport"))
        if named is None:
            return "stdio" if address is None else "http"
        found = _TRANSPORTS.get(named.lower()) if isinstance(named, str) else None
        if found is None:
            raise self.wrong("type", f"{named!r} is not a transport; there are stdio, http and sse")
        return found  # type: ignore[return-value]  # the values of the table are just these

    def _text(self, key: str) -> str:
        value = self.entry.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, "expected a text; a server has a command, or else a url")
        return self._filled(value, key)

    def _args(self) -> tuple[str, ...]:
        args = self.entry.get("args", [])
        if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
            raise self.wrong("args", "expected a list of texts")
        filled = tuple(self._filled(one, f"args[{index}]") for index, one in enumerate(args))
        for before, one in zip(("", *filled), filled, strict=False):  # --api-key VALUE, --api-key=VALUE
            self.secrets.update(secrets_within(one))
            option, _, value = one.partition("=")
            if before.startswith("-") and "=" not in before and is_secret_name(before):
                self.secrets.update(secrets_in(one))
            elif option.startswith("-") and is_secret_name(option) and value:
                self.secrets.update(secrets_in(value))
        return filled

    def _pairs(self, key: str, *, secret: Any) -> dict[str, str]:
        pairs = self.entry.get(key) or {}
        if not isinstance(pairs, Mapping):
            raise self.wrong(key, "expected an object")
        found = {}
        for name, value in pairs.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise self.wrong(f"{key}.{name}", "expected a text")
            if "\0" in name or "=" in name or not name:
                raise self.wrong(f"{key}.{name}", "is no name of a variable")
            text = self._filled(str(value), f"{key}.{name}")
            found[name] = text
            self.secrets.update(secrets_within(text))
            if secret(name):
                self.secrets.update(secrets_in(text))
        return found

    def _cwd(self, given: Path | None) -> Path | None:
        if self.entry.get("cwd") is None:
            return given
        cwd = Path(self._text("cwd")).expanduser()
        return cwd if cwd.is_absolute() else (given or self.folder or Path.cwd()) / cwd

    def _settings(self) -> ServerSettings:
        data = self.entry.get("narratoria", {})
        try:
            settings: ServerSettings = _parse_settings(data)
            for what, seconds in _times(settings):
                check_seconds(what, seconds, LONGEST_TIMEOUT)
                if seconds is not None and not seconds > 0:
                    raise ToolValidationError(f"{what} must be more than 0 seconds")
        except ToolValidationError as error:
            raise self.wrong("narratoria", str(error)) from None
        return settings

    def _filled(self, text: str, key: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            said = match[1].removeprefix("env:")
            name, colon, default = said.partition(":-")
            if name in ("workspaceFolder", "workspaceRoot"):
                return str(self.folder or Path.cwd())
            if name == "userHome":
                return str(Path.home())
            if name.startswith("input:"):
                raise self.wrong(key, f"{match[0]} asks a person, which we cannot; use ${{VAR}}")
            value = self.env.get(name) or (default if colon else self.env.get(name))
            if value is None:
                raise self.wrong(key, f"{name} is not set; set it where narratoria is started")
            if is_secret_name(name):
                self.secrets.update(secrets_in(value))
            return value

        return _VARIABLE.sub(value_of, text)


def _times(settings: ServerSettings) -> Iterable[tuple[str, float | None]]:
    yield "startTimeout", settings.start_timeout
    yield "timeout", settings.timeout
    for name, one in settings.tools.items():
        yield f"tools.{name}.timeout", one.timeout
