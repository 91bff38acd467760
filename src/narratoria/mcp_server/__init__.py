"""Our tools for any MCP host: a server over standard input and output, or over HTTP.

`catalogue` renders the tools, `calls` runs them as turns of a session (`turns`), `exchange` is one request with what
its tool may ask of the client, `notices` its progress and logs, `results` its answer; `offered_resources`,
`offered_prompts` and `offered_skills` are the other lists; `tool_server` puts them together; `stdio_server` and
`http_server` carry them.
"""

from narratoria.extras import absent, needed

try:
    from narratoria.mcp_server.exchange import Client, ClientCannot, client
    from narratoria.mcp_server.offered_prompts import OfferedPrompt, prompt_of_file, prompt_of_sections
    from narratoria.mcp_server.offered_resources import OfferedResource
    from narratoria.mcp_server.tool_server import ToolServer
except ModuleNotFoundError as error:
    if not absent("mcp"):
        raise
    raise ModuleNotFoundError(f"narratoria.mcp_server {needed('mcp')}", name=error.name) from None

__all__ = [
    "Client",
    "ClientCannot",
    "OfferedPrompt",
    "OfferedResource",
    "ToolServer",
    "client",
    "prompt_of_file",
    "prompt_of_sections",
]
