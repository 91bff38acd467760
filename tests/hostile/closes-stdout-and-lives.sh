#!/bin/bash
# call: TIMEOUT
# says: no result within
# rule: ends
# time: 1
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
exec >&-
while :; do sleep 0.05; done
