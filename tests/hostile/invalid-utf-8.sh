#!/bin/bash
# call: PROTOCOL_ERROR
# says: not UTF-8
# rule: utf-8
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
printf '{"version":"0","type":"log","level":"info","message":"caf\xe9"}\n'
echo '{"version":"0","type":"done","ok":true}'
