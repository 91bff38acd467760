#!/bin/sh
# test_setup.sh PYTHON VENV: all that the tests need. After Debian's packages, what comes from npm and from PyPI is fetched at
# the same time.
set -eu
scripts/test_needs.sh
(scripts/npm_needs.sh && scripts/mcp_servers.sh "$1" build/mcp-servers) &
fetching=$!
scripts/venv.sh "$1" "$2"
scripts/install_wheel.sh "$(cd "$2" && pwd)/bin"
wait $fetching
