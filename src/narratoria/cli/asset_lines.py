"""Pictures, sounds and other assets of a turn as text: a title in words, and the path of the file."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from narratoria.cli.output import styled
from narratoria.cli.pictures import show_picture
from narratoria.events import AssetStored
from narratoria.session.assets import AssetStore

_KINDS: Final = {"image": "a picture", "audio": "a sound", "video": "a film", "text": "a text"}


def print_asset(out: Console, asset: AssetStored, store: AssetStore) -> None:
    """Print the title and the path of an asset, below the picture itself where the terminal shows it."""
    try:
        path = store.path_of(asset.hash)
    except KeyError:
        path = None
    if path is not None and asset.media_type.startswith("image/"):
        show_picture(out, path)
    out.print(styled(("  ◆ ", "magenta"), (asset_title(asset), "")))
    out.print(styled((f"    {path or 'the file is gone'}", "dim")))


def asset_title(asset: AssetStored) -> str:
    """Return the title, caption or description that the tool gave it, else its kind in words."""
    given = asset.metadata or {}
    named = [given.get(key) for key in ("title", "caption", "alt")]
    title = next((one for one in named if isinstance(one, str) and one.strip()), None)
    if title is not None:
        return " ".join(title.split())
    kind = _KINDS.get(asset.media_type.partition("/")[0]) or _KINDS.get(asset.kind)
    return kind or "a file"
