#!/bin/bash
# call: PROTOCOL_ERROR
# says: patch
# rule: patch-is-object
echo '{"version":"0","type":"state_patch","patch":[1]}'
echo '{"version":"0","type":"done","ok":true}'
