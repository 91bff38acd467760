"""A session: the state tree, changed only by committed drafts, with its memory, assets and resources."""

from narratoria.session.dispatcher import Dispatcher, ToolInvoked
from narratoria.session.draft import Draft
from narratoria.session.record import Record
from narratoria.session.session import Session

__all__ = ["Dispatcher", "Draft", "Record", "Session", "ToolInvoked"]
