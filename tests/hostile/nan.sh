#!/bin/bash
# call: PROTOCOL_ERROR
# says: NaN
# rule: ndjson
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
echo '{"version":"0","type":"state_patch","patch":{"x":NaN}}'
echo '{"version":"0","type":"done","ok":true}'
