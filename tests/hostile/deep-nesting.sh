#!/bin/bash
# call: PROTOCOL_ERROR
# says: nested too deeply
# rule: ndjson
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
printf '{"version":"0","type":"state_patch","patch":{"x":'
head -c 100000 /dev/zero | tr '\0' '['
head -c 100000 /dev/zero | tr '\0' ']'
echo '}}'
echo '{"version":"0","type":"done","ok":true}'
