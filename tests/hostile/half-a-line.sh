#!/bin/bash
# call: PROTOCOL_ERROR
# says: middle of a line
# rule: whole-lines
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
printf '{"version":"0","type":"done","o'
kill -KILL $$
