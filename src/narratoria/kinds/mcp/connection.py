"""A connection to an MCP server: opened when first needed, shared by calls, and opened again after it ended.

One task owns a connection from its start to its end, since the official client has to be entered and left in one task;
calls use it from theirs. A call that takes too long is cancelled at the server, and the server is then asked for a sign
of life: one that gives none hangs, and is ended. There is no restart in the background: the next call makes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import (
    EXECUTION_FAILED,
    PROTOCOL_ERROR,
    TIMEOUT,
    CallFailure,
    NarratoriaError,
    ToolFailure,
)
from narratoria.extras import needed
from narratoria.kinds.mcp.connection_life import CLOSED, EXPIRED, REFUSED, Life, gives_sign, in_words
from narratoria.kinds.mcp.notifications import Notes, hear_changes, level_of, text_of
from narratoria.kinds.mcp.server_file import McpServer
from narratoria.kinds.process.launch import LaunchRefused
from narratoria.tools.tool import ToolContext

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client


logger = logging.getLogger("narratoria.mcp")

LIST_TIMEOUT: Final = 30.0
CLOSING: Final = 10.0
RELIST_PAUSE: Final = 0.1  # changes within it make one new list
MOST_PAGES: Final = 100
MOST_TOOLS: Final = 5_000
_PYTHON_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class ServerUnavailable(NarratoriaError):
    """A server cannot be reached or did not start; the message says why."""

    def __init__(self, message: str, code: str = EXECUTION_FAILED) -> None:
        super().__init__(message)
        self.code = code


def check_installed() -> None:
    """Raise `ServerUnavailable`, with the command that helps, if the package `mcp` is missing."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise ServerUnavailable(f"a tool of an MCP server {needed('mcp')}") from None
    for name in ("mcp", "client"):  # its own names; without a handler Python would print its warnings
        logging.getLogger(name).addHandler(logging.NullHandler())


class Connection:
    """A server, as the calls of one registry share it. It may be used in several event loops, one after the other."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.on_change: Callable[[list[mcp_types.Tool]], None] | None = None
        """Called with the new list when the server says that its tools changed."""
        self._lives: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Life] = weakref.WeakKeyDictionary()
        self._remarks: list[str] = []
        self.left_out: list[str] = []
        """Tools that the server listed in a way that cannot be read, a line for each."""

    # --- using ------------------------------------------------------------------------------------------

    async def list_tools(self) -> list[mcp_types.Tool]:
        """Return the tools of the server; raise `ServerUnavailable`."""
        live = await self._ready()
        try:
            return await self._list(live)
        except Exception as error:  # foreign code: whatever it raises, the server cannot be used
            raise ServerUnavailable(
                f"{self._who}: its tools cannot be listed: {await self._why(live, error)}"
            ) from error

    async def call(
        self, tool: str, arguments: Mapping[str, Any], context: ToolContext, *, repeatable: bool
    ) -> mcp_types.CallToolResult:
        """Call a tool within the call's time limit. Raises `ToolFailure`.

        A call that is not `repeatable` is not to be tried again where it may have been carried out.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        name, live = context.tool.name, None
        bound = asyncio.timeout(context.time_limit)
        try:
            async with bound:
                live = await self._ready()
                try:
                    return await self._send(live, tool, arguments, context)
                except MCPError as error:
                    if error.message != EXPIRED:
                        raise
                    await self.close()  # the server knows us no more and ran nothing: begin another session
                    live = await self._ready()
                    return await self._send(live, tool, arguments, context)
        except TimeoutError as error:
            if not bound.expired():
                raise CallFailure(EXECUTION_FAILED, f"{name}: {await self._why(live, error)}") from error
            raise self._too_late(context, live, repeatable) from None
        except ServerUnavailable as error:
            raise CallFailure(error.code, f"{name}: {error}") from error
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and (live is None or live.gone or error.message == CLOSED):
                raise await self._cut_off(name, live, error, repeatable) from None
            text = self._safe(error.message) or "the server refused the call"
            if error.message == REFUSED and live is not None:
                live.doubt()  # a session that the server forgot, perhaps
            raise ToolFailure(EXECUTION_FAILED, f"{name}: {text}", details={"mcpCode": error.code}) from None
        except (
            RuntimeError,
            ValueError,
        ) as error:  # of the client: the answer is not what the server promised
            raise CallFailure(PROTOCOL_ERROR, f"{name}: {self._safe(str(error))[:2000]}") from None

    async def _send(
        self, live: Life, tool: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> mcp_types.CallToolResult:
        assert live.client is not None  # noqa: S101 - a settled one has it
        with self._heard(live, context) as notes:
            return await live.client.call_tool(tool, dict(arguments), progress_callback=notes.progress)

    def _too_late(self, context: ToolContext, live: Life | None, repeatable: bool) -> CallFailure:
        said = f"{context.tool.name}: no result within {context.time_limit:g} s"
        if live is None:
            said += f"; {self._who} is not ready yet"
        else:
            live.doubt()
            said += f"; {self._who} was told to stop the call"
        advice = "allow more time with --timeout, or `timeout` under `narratoria` in the file of servers"
        return CallFailure(TIMEOUT, said, recoverable=repeatable or live is None, suggestions=[advice])

    async def _cut_off(self, name: str, live: Life | None, error: Exception, repeatable: bool) -> CallFailure:
        why = await self._why(live, error)
        fault = live.process.fault if live is not None and live.process is not None else None
        code = EXECUTION_FAILED if fault is None else fault[0]
        said = f"{name}: {self._who} {why}; it is started again when it is needed"
        return CallFailure(code, said, recoverable=repeatable)

    async def close(self) -> None:
        """End the connection of the running loop, the process of the server included."""
        live = self._lives.pop(asyncio.get_running_loop(), None)
        if live is not None and live.task is not None:
            live.close()
            await asyncio.wait([live.task], timeout=CLOSING)

    @property
    def _who(self) -> str:
        return f"the MCP server {self.server.name!r}"

    def _safe(self, text: str) -> str:
        return self.server.redaction.text(text)

    # --- one life -----------------------------------------------------------------------------------------

    async def _ready(self) -> Life:
        """Return the connection of this loop, started if it is not; raise `ServerUnavailable`."""
        loop = asyncio.get_running_loop()
        for _ in range(3):  # it may end while we wait for it
            live = self._lives.get(loop)
            if live is None or live.over:
                if live is not None and live.failure is None and not live.closing:
                    self._remarks.append(f"{self._who} had ended and was started again")
                check_installed()
                live = self._lives[loop] = Life()
                live.task = loop.create_task(self._serve(live), name=f"mcp {self.server.name}")
            await live.settled.wait()
            if live.failure is not None:
                raise live.failure
            if not live.over:
                return live
        raise ServerUnavailable(f"{self._who} ends again and again")

    async def _serve(self, live: Life) -> None:
        """Own a connection: open it, attend to it, and close it."""
        limit = self.server.settings.start_timeout
        bound = asyncio.timeout(limit)
        started = False
        try:
            async with bound, self._opened(live) as client:
                bound.reschedule(None)
                live.client, started = client, True
                live.settled.set()
                await self._attend(live, client)
        except TimeoutError:
            live.failure = (
                None if started else self._not_started(live, f"it was not ready within {limit:g} s")
            )
        except LaunchRefused as error:
            live.failure = ServerUnavailable(
                f"{self._who} could not be started: {self._safe(str(error))}", error.code
            )
        except Exception as error:  # foreign code: its end, however it comes, is the connection's end
            if started:
                logger.info("%s: %s", self._who, self._safe(in_words(error)))
            else:
                live.failure = self._not_started(live, self._safe(in_words(error)))
        finally:
            live.over, live.client = True, None
            live.settled.set()

    def _not_started(self, live: Life, why: str) -> ServerUnavailable:
        if live.process is not None:
            ending = live.process.ending
            why = ending if live.process.fault or not why.startswith("it was") else f"{why}; it {ending}"
        if live.refused is not None or (self.server.transport == "sse" and "401 Unauthorized" in why):
            return ServerUnavailable(
                f"{self._who} asks for a login ({self.server.where}): {self._login_advice(live)}"
            )
        return ServerUnavailable(f"{self._who} did not start ({self.server.where}): {why}")

    def _login_advice(self, live: Life) -> str:
        """Return what a person can do about a server that lets nobody in without a token."""
        header = '"headers": {"Authorization": "Bearer ${A_VARIABLE}"}'
        if any(name.lower() == "authorization" for name in self.server.headers):
            return f"it answered {live.refused or 401} to the token in `headers`; get a new one"
        return (
            f"it answered {live.refused or 401}. We do no OAuth login: get a token from its owner and add {header}, or "
            f'let a program log in for you: "command": "npx", "args": ["-y", "mcp-remote", "<its url>"]'
        )

    @contextlib.asynccontextmanager
    async def _opened(self, live: Life) -> AsyncIterator[Client]:
        import mcp_types
        from mcp import Client

        from narratoria import __version__
        from narratoria.kinds.mcp.malformed_parts import mended

        async def on_message(message: object) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                live.note_change()

        async def on_log(params: mcp_types.LoggingMessageNotificationParams) -> None:
            self._note_log(live, params)

        async with self._transport(live) as transport:
            # No callback for elicitation, sampling and roots: the client then says that it has none of them, and
            # answers a server that asks all the same with "not supported".
            client = Client(
                mended(transport, live.mended.extend),
                message_handler=on_message,
                logging_callback=on_log,
                log_level="info",
                cache=None,
                client_info=mcp_types.Implementation(name="narratoria", version=__version__),
            )
            async with client:
                yield client

    @contextlib.asynccontextmanager
    async def _transport(self, live: Life) -> AsyncIterator[Any]:
        server = self.server
        if server.transport == "stdio":
            from narratoria.kinds.mcp.server_process import ServerProcess

            live.process = ServerProcess(server, live.wake)
            yield live.process.connected()
        elif server.transport == "sse":
            from mcp.client.sse import sse_client

            yield sse_client(server.url, headers=dict(server.headers))
        else:
            from mcp.client.streamable_http import streamable_http_client

            from narratoria.kinds.mcp.bounded_http import MESSAGE_BYTES, http_client

            def refused(status: int) -> None:
                live.refused = status

            async with http_client(server.headers, refused) as http:
                yield streamable_http_client(server.url, http_client=http, max_sse_event_size=MESSAGE_BYTES)

    async def _attend(self, live: Life, client: Client) -> None:
        """Wait for the end, and meanwhile see to doubts and to changed lists."""
        listening = asyncio.create_task(hear_changes(client, live.note_change))
        try:
            while not live.closing and not (live.process is not None and live.process.over):
                await live.news.wait()
                live.news.clear()
                if live.doubted and not live.closing:
                    if not await gives_sign(client):
                        if live.process is not None:
                            live.process.hung = True
                        logger.warning("%s gave no sign of life and was ended", self._who)
                        return
                    live.doubted = False
                    live.settled.set()
                if live.changed and not live.closing:
                    await asyncio.sleep(RELIST_PAUSE)
                    live.changed = False
                    await self._relist(live)
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    async def _relist(self, live: Life) -> None:
        if self.on_change is None:
            return
        try:
            self.on_change(await self._list(live))
        except Exception as error:  # foreign code; the tools stay as they were
            logger.warning(
                "%s: its changed tools cannot be listed: %s", self._who, self._safe(in_words(error))
            )

    async def _list(self, live: Life) -> list[mcp_types.Tool]:
        client = live.client
        if client is None or client.server_capabilities.tools is None:
            return []
        found: list[mcp_types.Tool] = []
        cursor = None
        self.left_out = []
        async with asyncio.timeout(LIST_TIMEOUT):
            for _ in range(MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                self.left_out += self._take_mended(live)
                if page.next_cursor is None or page.next_cursor == cursor or len(found) >= MOST_TOOLS:
                    break
                cursor = page.next_cursor
        return found[:MOST_TOOLS]

    async def _why(self, live: Life | None, error: BaseException) -> str:
        """Return the reason of a failure: the way the process ended, if it did."""
        if live is not None and live.process is not None and live.task is not None:
            if live.process.over or live.closing:
                await asyncio.wait([live.task], timeout=CLOSING)
            if live.process.hung:
                return "gave no sign of life and was ended"
            if live.over:
                return live.process.ending
        return self._safe(in_words(error))

    # --- notifications ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _heard(self, live: Life, context: ToolContext) -> Any:
        """Let the notifications of the server become events of this call, while it runs."""
        notes = Notes(context, self._safe)
        live.calls[id(notes)] = notes
        try:
            yield notes
        finally:
            del live.calls[id(notes)]
            for remark in self._take_remarks(live):
                context.session.report(remark)

    def _take_remarks(self, live: Life) -> list[str]:
        remarks, self._remarks = self._remarks, []
        remarks += [f"{self._who}: {one}" for one in self._take_mended(live)]
        process = live.process
        if process is not None and process.noise > live.told_noise:
            live.told_noise = process.noise
            lines = "1 line" if process.noise == 1 else f"{process.noise:,} lines"
            remarks.append(
                f"{self._who} wrote to stdout what is no message, {lines} so far, which were skipped: "
                f"{', '.join(process.noise_heads)}; it should write them to stderr"
            )
        return remarks

    def _take_mended(self, live: Life) -> list[str]:
        """Return what was left out of the server's answers since the last time."""
        left_out = [self._safe(one) for one in live.mended]
        live.mended.clear()
        return left_out

    def _note_log(self, live: Life, params: mcp_types.LoggingMessageNotificationParams) -> None:
        level, text = level_of(params.level), text_of(params.data)
        if live.calls:  # a log names no call: the newest is the likeliest
            fields = {"logger": params.logger} if params.logger else {}
            next(reversed(live.calls.values())).note(text, level, fields)
        else:
            logger.log(_PYTHON_LEVELS[level], "%s: %s", self._who, self._safe(text))
