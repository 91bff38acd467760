#!/bin/bash
# call: PROTOCOL_ERROR
# says: more than one JSON value
# rule: ndjson
echo '{"version":"0","type":"log","level":"info","message":"m"}{"version":"0","type":"done","ok":true}'
