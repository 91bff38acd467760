#!/bin/bash
# call: OUTPUT_LIMIT
# says: a line is longer than
# rule: within-limits
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
yes 0123456789abcdef | tr -d '\n'
