#!/bin/bash
# call: NON_ZERO_EXIT
# says: exited with status 3
# rule: exit-status
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
echo '{"version":"0","type":"done","ok":true}'
exit 3
