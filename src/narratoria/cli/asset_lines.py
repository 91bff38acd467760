"""Pictures, sounds and other assets of a turn as a line of text: a title in words, and the path of the file."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from narratoria.cli.output import styled
from narratoria.events import AssetStored
from narratoria.session.assets import AssetStore

_KINDS: Final = {"image": "a picture", "audio": "a sound", "video": "a film", "text": "a text"}


def asset_line(asset: AssetStored, store: AssetStore) -> Text:
    try:
        path = str(store.path_of(asset.hash))
    except KeyError:
        path = "the file is gone"
    return styled(("  ◆ ", "magenta"), (asset_title(asset), ""), (f"  {path}", "dim"))


def asset_title(asset: AssetStored) -> str:
    """Return the title, caption or description that the tool gave it, else its kind in words."""
    given = asset.metadata or {}
    named = [given.get(key) for key in ("title", "caption", "alt")]
    title = next((one for one in named if isinstance(one, str) and one.strip()), None)
    if title is not None:
        return " ".join(title.split())
    kind = _KINDS.get(asset.media_type.partition("/")[0]) or _KINDS.get(asset.kind)
    return kind or "a file"
