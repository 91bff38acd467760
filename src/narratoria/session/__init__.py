"""World state: a tree that changes by committed drafts only, and everything else a story remembers."""

from narratoria.session.dispatcher import Dispatcher, ToolInvoked
from narratoria.session.draft import Draft
from narratoria.session.session import Record, Session

__all__ = ["Dispatcher", "Draft", "Record", "Session", "ToolInvoked"]
