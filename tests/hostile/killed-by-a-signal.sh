#!/bin/bash
# call: NON_ZERO_EXIT
# says: signal 11
# rule: exit-status
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
kill -SEGV $$
