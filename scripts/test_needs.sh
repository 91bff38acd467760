#!/bin/sh
# What the tests need beside Python: compilers and interpreters of the example tools, a browser, a database server, sixels.
set -eu
missing=
need() { # need COMMAND PACKAGE
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need cc gcc
need make make
need node nodejs
need npm npm
need awk mawk
need go golang-go
need chromium chromium
need img2sixel libsixel-bin
[ -n "$(ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ] || missing="$missing postgresql"
if command -v fc-list >/dev/null 2>&1; then
  fc-list | grep -qi 'color *emoji' || missing="$missing fonts-noto-color-emoji"
  fc-list ':lang=ja' | grep -q . || missing="$missing fonts-noto-cjk"
else
  missing="$missing fontconfig fonts-noto-color-emoji fonts-noto-cjk"
fi
# Debian has it, Ubuntu does not; `make test-pages` plays a story in it where it is there
if ! command -v firefox-esr >/dev/null 2>&1 && apt-cache show firefox-esr >/dev/null 2>&1; then
  missing="$missing firefox-esr"
fi
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing:$missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update >/dev/null
  # shellcheck disable=SC2086
  apt-get install -y --no-install-recommends $missing >/dev/null
else
  echo "not installed:$missing; tests that need them will be skipped and say so" >&2
fi
