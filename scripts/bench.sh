#!/bin/sh
# bench.sh BIN: every benchmark, one after another; each prints what was measured beside its target.
set -eu
bin=$1
"$bin/python" -m compileall -q src
for file in bench/bench_*.py; do
  echo
  echo "== ${file#bench/bench_}"
  env -u PYTHONDONTWRITEBYTECODE "$bin/python" "$file" || failed="${failed:-} $file"
done
[ -z "${failed:-}" ] || { echo "did not run to their end:$failed" >&2; exit 1; }
