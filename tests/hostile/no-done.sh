#!/bin/bash
# call: MISSING_DONE
# says: without a `done`
# rule: done-once
cat >/dev/null
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
