#!/bin/bash
# call: PROTOCOL_ERROR
# says: send everything else to stderr
# rule: ndjson
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
echo 'Loading model...'
echo '{"version":"0","type":"done","ok":true}'
