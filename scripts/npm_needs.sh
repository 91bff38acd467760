#!/bin/sh
# npm_needs.sh: what the tests need from npm, into build/npm: the MCP inspector and the MCP conformance suite, the Node
# they run with, published OpenAPI documents, and pyright. Without npm or the registry those tests are skipped and say so.
set -eu
want="node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0 @readme/oas-examples pyright@1.1.414"
[ "$(cat build/npm/.has 2>/dev/null)" = "$want" ] && exit 0
if ! command -v npm >/dev/null 2>&1; then
  echo "not installed: npm; tests that need it will be skipped and say so" >&2
  exit 0
fi
mkdir -p build/npm
echo "installing from npm: $want"
# shellcheck disable=SC2086
if npm install --prefix build/npm --no-audit --no-fund --loglevel=error $want >build/npm/log 2>&1; then
  echo "$want" >build/npm/.has
else
  echo "not installed from npm; tests that need it will be skipped and say so (build/npm/log has the reason)" >&2
fi
