#!/bin/sh
# dist.sh BIN: build the wheel and the source archive into dist/, and try each where nothing else is installed.
set -eu
bin=$1
rm -rf dist build/tried
mkdir -p build/tried
"$bin/python" -m build --outdir dist .
"$bin/python" -m twine check --strict dist/*
version=$("$bin/python" -c 'import re, pathlib; print(re.search(r"__version__ = \"(.+)\"", pathlib.Path("src/narratoria/__init__.py").read_text())[1])')

try_it() { # try_it COMMAND…: the installed program runs a tool of any language and tells a story
  export NARRATORIA_HOME="$PWD/build/tried/home"
  [ "$("$@" --version)" = "narratoria, version $version" ] || { echo "$* --version does not say $version" >&2; exit 1; }
  "$@" call examples/tools/door-examiner --input '{"target": "mysterious_door"}' >/dev/null
  echo "light the torch" | "$@" play torch --narrator rules --terminal --json >build/tried/turns.ndjson
  grep -q "Torch lit" build/tried/turns.ndjson || { echo "$* did not tell of the torch; it told:" >&2; cat build/tried/turns.ndjson >&2; exit 1; }
}

for archive in dist/*.whl dist/*.tar.gz; do
  rm -rf build/tried/venv
  "$bin/python" -m venv build/tried/venv
  build/tried/venv/bin/python -m pip install --quiet --constraint constraints.txt "$archive"
  try_it build/tried/venv/bin/narratoria
  case $archive in *.whl) build/tried/venv/bin/python scripts/make_sbom.py "$archive" ;; esac
  echo "✓ $archive installs in an empty environment, runs a tool and tells a story"
done
try_it "$bin/uvx" --quiet --from "$(ls "$PWD"/dist/*.whl)" narratoria
echo "✓ uvx runs the wheel"
