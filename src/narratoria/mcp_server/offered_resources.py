"""Resources: the session's state, the files its tools made, and skills. The state can be subscribed to."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from narratoria.events import AssetStored, JsonObject
from narratoria.mcp_server.offered_skills import OfferedSkills
from narratoria.session import Session

STATE: Final = "narratoria://state"
ASSETS: Final = "narratoria://assets/"
LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a file that can be read as a resource: it is sent as one message."""
TEMPLATE: Final = "narratoria://assets/{hash}"
_TEXT: Final = re.compile(r"text/.*|application/(json|xml|toml|yaml|javascript)|.*\+(json|xml)")


def is_text(media_type: str) -> bool:
    return _TEXT.fullmatch(media_type.partition(";")[0].strip().lower()) is not None


def asset_uri(asset: AssetStored) -> str:
    return f"{ASSETS}{quote(asset.hash)}"


def asset_link(asset: AssetStored) -> JsonObject:
    """An asset as a resource is listed."""
    return {
        "uri": asset_uri(asset),
        "name": asset.name or asset.asset_id,
        "title": asset.asset_id,
        "mimeType": asset.media_type,
        "size": asset.size,
    }


@dataclass(frozen=True)
class OfferedResource:
    """A resource of the program that serves the tools: a text, bytes, or a function of the template's values."""

    uri: str
    """An address, or a template of one: `notes://{name}`."""
    content: str | bytes | Callable[[Mapping[str, str]], str | bytes]
    name: str = ""
    media_type: str = "text/plain"
    description: str | None = None
    _pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = re.split(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", self.uri)
        texts = [f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts)]
        object.__setattr__(self, "_pattern", re.compile("".join(texts)))

    @property
    def is_template(self) -> bool:
        """True if its address has a placeholder."""
        return "{" in self.uri

    def data(self) -> JsonObject:
        """The resource as it is listed."""
        listed: JsonObject = {
            "uriTemplate" if self.is_template else "uri": self.uri,
            "name": self.name or self.uri,
            "mimeType": self.media_type,
        }
        if self.description is not None:
            listed["description"] = self.description
        return listed

    def read(self, uri: str) -> str | bytes | None:
        """The content at an address; None if it is another one's."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        return self.content(found.groupdict()) if callable(self.content) else self.content


class Resources:
    """The resources of a session, those of the program, and those of skills."""

    def __init__(
        self,
        session: Session,
        offered: Iterable[OfferedResource] = (),
        skills: OfferedSkills | None = None,
    ) -> None:
        self._skills = skills
        self._session = session
        self._offered = tuple(offered)

    def listed(self) -> list[JsonObject]:
        """The state first, then what the program offers, the skills, and the files in the order they were made."""
        state = {
            "uri": STATE,
            "name": "state",
            "title": "The state of the session",
            "mimeType": "application/json",
        }
        offered = [one.data() for one in self._offered if not one.is_template]
        skills = self._skills.resources() if self._skills is not None else []
        return [state, *offered, *skills, *map(asset_link, self._assets().values())]

    def templates(self) -> list[JsonObject]:
        files = {
            "uriTemplate": TEMPLATE,
            "name": "asset",
            "title": "A file that a tool made, by its hash",
        }
        return [files, *(one.data() for one in self._offered if one.is_template)]

    async def read(self, uri: str) -> JsonObject:
        """The contents at an address. Raise the protocol's error if there are none."""
        if uri == STATE:
            text = json.dumps(self._session.snapshot(), ensure_ascii=False)
            return _contents(uri, "application/json", text)
        if uri.startswith(ASSETS):
            asset = self._assets().get(uri.removeprefix(ASSETS))
            if asset is not None:
                return await asyncio.to_thread(self._file, uri, asset)
        for one in self._offered:
            content = one.read(uri)
            if content is not None:
                return _contents(uri, one.media_type, content)
        file = self._skills.read(uri) if self._skills is not None else None
        if file is not None:
            return {"contents": [file]}
        raise _missing(uri)

    def complete(self, template: str, typed: str) -> list[str]:
        """The values that could follow what was typed into a template."""
        return [one for one in self._assets() if one.startswith(typed)] if template == TEMPLATE else []

    def _assets(self) -> dict[str, AssetStored]:
        """The session's files by hash; each is named once, whoever made it."""
        return {asset.hash: asset for asset in self._session.asset_records.values()}

    def _file(self, uri: str, asset: AssetStored) -> JsonObject:
        if asset.size > LARGEST:
            told = f"{asset.name or asset.asset_id} has {asset.size:,} bytes; {LARGEST:,} is the most that is sent"
            raise MCPError(types.INVALID_PARAMS, told)
        try:
            content = self._session.assets.path_of(asset.hash).read_bytes()
        except (KeyError, OSError):
            raise _missing(uri) from None
        return _contents(uri, asset.media_type, content)


def _contents(uri: str, media_type: str, content: str | bytes) -> JsonObject:
    one: JsonObject = {"uri": uri, "mimeType": media_type}
    if isinstance(content, bytes) and is_text(media_type):
        content = content.decode("utf-8", "replace")
    if isinstance(content, bytes):
        one["blob"] = base64.b64encode(content).decode("ascii")
    else:
        one["text"] = content
    return {"contents": [one]}


def _missing(uri: str) -> MCPError:
    # 2026-07-28, SEP-2164: a resource that is not there is a wrong parameter.
    problem: Any = {"uri": uri}
    return MCPError(
        types.INVALID_PARAMS, f"there is no resource {uri!r}; resources/list has those there are", problem
    )
