"""Types of arguments that a shell can complete: stories of the library, saved sessions.

`_NARRATORIA_COMPLETE=bash_source narratoria` prints the script that a shell needs, as click documents it. The shell
itself completes the paths of tools.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from narratoria.errors import NarratoriaError

SHOWN_SESSIONS: Final = 50  # those played last


class _Story(click.types.StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the stories of the library, then leave the rest to the shell's completion of folders."""
        from narratoria.play.story_library import find_stories

        found = [story for story in find_stories() if story.id.startswith(incomplete)]
        named = [CompletionItem(story.id, help=story.title) for story in found]
        return named or [CompletionItem(incomplete, type="dir")]


class _Session(click.types.StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the sessions played last."""
        from narratoria.store.default_store import default_store

        try:
            with closing(default_store()) as store:
                metas = [meta for meta in store.list() if meta.begun and meta.id.startswith(incomplete)]
        except (NarratoriaError, OSError):
            return []  # a shell has no place for an error
        return [
            CompletionItem(meta.id[:12], help=meta.title or meta.story or "")
            for meta in metas[:SHOWN_SESSIONS]
        ]


STORY: Final[click.ParamType[Any]] = _Story()
SESSION: Final[click.ParamType[Any]] = _Session()
