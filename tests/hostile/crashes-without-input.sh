#!/bin/bash
# call: ok
# rule: bears-no-input, bears-garbage
request=$(cat)
[[ $request == "{"* ]] || { echo 'no input' >&2; exit 1; }
echo '{"version":"0","type":"done","ok":true}'
