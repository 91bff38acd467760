#!/bin/bash
# call: OUTPUT_LIMIT
# says: more than 200,000 events
# rule: within-limits
# time: 40
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
yes '{"version":"0","type":"log","level":"info","message":"m"}' | head -n 1000000
echo '{"version":"0","type":"done","ok":true}'
