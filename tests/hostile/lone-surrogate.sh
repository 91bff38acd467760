#!/bin/bash
# call: PROTOCOL_ERROR
# says: half of a surrogate pair
# rule: ndjson
printf '%s\n' '{"version":"0","type":"log","level":"info","message":"a\ud800b"}'
echo '{"version":"0","type":"done","ok":true}'
