#!/bin/bash
# call: PROTOCOL_ERROR
# says: not an object
# rule: ndjson
echo '[1, 2]'
echo '{"version":"0","type":"done","ok":true}'
