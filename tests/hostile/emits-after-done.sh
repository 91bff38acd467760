#!/bin/bash
# call: ok
# rule: nothing-after-done, done-once
echo '{"version":"0","type":"done","ok":true}'
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
