#!/bin/sh
# mcp_servers.sh PYTHON FOLDER: published MCP servers for the tests of our client, from PyPI and npm. Without a network
# they are left out, and their tests are skipped and say so. Old ones want another version of the package mcp than we.
set -eu
python=$1 folder=$2
stamp="$folder/.ready-2"
[ -e "$stamp" ] && exit 0
mkdir -p "$folder"
ready=yes
pypi() { # pypi VENV PACKAGE…
  venv=$1
  shift
  scripts/venv.sh "$python" "$folder/$venv"
  "$folder/$venv/bin/python" -m pip install --quiet "$@" >/dev/null 2>&1 || ready=
}
pypi new mcp-server-time==2026.10.19 mcp-server-fetch==2026.10.24 mcp-server-git==2026.10.19
pypi old mcp-server-sqlite==2025.4.25 'mcp<2'
version=2026.8.31
scope=@modelcontextprotocol
if command -v npm >/dev/null; then
  npm install --prefix "$folder/npm" --no-audit --no-fund --silent "$scope/server-filesystem@$version" \
    "$scope/server-memory@$version" "$scope/server-everything@$version" >/dev/null 2>&1 || ready=
else
  ready=
fi
if [ -n "$ready" ]; then
  touch "$stamp"
else
  echo "not every published MCP server could be installed; tests that need them will be skipped and say so" >&2
fi
