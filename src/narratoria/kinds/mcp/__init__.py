"""Tools of MCP servers, each a `Tool` named `server.tool`. The package `mcp` is loaded when a server is opened."""
