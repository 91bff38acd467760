#!/bin/bash
# call: PROTOCOL_ERROR
# says: appears twice
# rule: ndjson
echo '{"version":"0","type":"state_patch","patch":{"hp":1,"hp":0}}'
echo '{"version":"0","type":"done","ok":true}'
