#!/bin/sh
# bench.sh BIN: every benchmark, one after another; each prints what was measured beside its target.
# Missed targets are listed again at the end and fail nothing; a benchmark that breaks off does.
set -eu
bin=$1
notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT
"$bin/python" -m compileall -q src
for file in bench/bench_*.py; do
  echo
  echo "== ${file#bench/bench_}"
  # A pipe has only its last command's status, so the benchmark's own is noted beside it.
  { env -u PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED=1 "$bin/python" "$file" || echo "$file" >>"$notes/broken"; } |
    tee -a "$notes/told"
done
if grep -q MISSED "$notes/told"; then
  echo
  echo "== missed"
  grep MISSED "$notes/told"
fi
if [ -e "$notes/broken" ]; then
  echo "broke off: $(tr '\n' ' ' <"$notes/broken")" >&2
  exit 1
fi
