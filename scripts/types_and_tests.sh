#!/bin/sh
# types_and_tests.sh BIN ARGS…: strict types beside the tests. The type checker has one core, and the tests often wait.
set -u
mkdir -p build
"$1/mypy" >build/types.log 2>&1 &
types=$!
scripts/test.sh "$@"
tests=$?
wait $types
checked=$?
cat build/types.log
[ $tests != 0 ] && exit $tests
exit $checked
