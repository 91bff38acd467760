#!/bin/sh
# venv.sh PYTHON FOLDER: a virtual environment that works, made anew when it does not.
set -eu
python=$1 folder=$2
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "narratoria needs Python 3.11 or newer; $python is $("$python" --version 2>&1)" >&2
  exit 1
}
if "$folder/bin/python" -m pip --version >/dev/null 2>&1; then exit 0; fi
rm -rf "$folder"
if ! "$python" -m venv "$folder" 2>/dev/null; then
  # Debian keeps ensurepip in a package of its own.
  rm -rf "$folder"
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y python3-venv >/dev/null || { apt-get update >/dev/null && apt-get install -y python3-venv >/dev/null; }
    "$python" -m venv "$folder"
  else
    echo "python3-venv is missing; install it first: sudo apt-get install python3-venv" >&2
    exit 1
  fi
fi
