#!/bin/sh
# s3_server.sh PYTHON FOLDER: moto, an S3 server that checks signatures, in an environment of its own for the tests of
# assets in a bucket. Without a network it is left out, and its tests are skipped and say so.
set -eu
python=$1 folder=$2
[ -e "$folder/.ready-1" ] && exit 0
scripts/venv.sh "$python" "$folder"
if "$folder/bin/python" -m pip install --quiet 'moto[s3]==5.2.5' flask==3.1.3 flask-cors==6.0.5 >/dev/null 2>&1; then
  touch "$folder/.ready-1"
else
  echo "moto could not be installed; tests of assets in a bucket will be skipped and say so" >&2
fi
