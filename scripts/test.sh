#!/bin/sh
# test.sh BIN ARGS…: run the tests against the installed wheel. They run in a copy, so that src/ cannot be imported.
set -eu
bin=$1
shift
root=$(pwd)
copy=build/test-tree
rm -rf "$copy"
mkdir -p "$copy" build/screens
cp -r tests docs examples stories contracts evals scripts README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE constraints.txt pyproject.toml zensical.toml "$copy/"
cd "$copy"
# pytest rewrites every module of tests, which takes as long as all else until the first test. Done once, it is there for
# every worker. What is wrong is told by the run itself.
PATH="$bin:$PATH" NARRATORIA_SOURCE="$root" PYTHONDONTWRITEBYTECODE= \
  "$bin/python" -m pytest --collect-only -qq "$@" >/dev/null 2>&1 || true
# Three workers for two cores, since one often waits for a process or a deadline. Neighbours stay with one worker and share
# its browser, its servers and its models.
PATH="$bin:$PATH" NARRATORIA_SCREENS="$root/build/screens" NARRATORIA_SOURCE="$root" \
  exec "$bin/python" -m pytest -n 3 --dist worksteal "$@"
