#!/bin/bash
# call: PROTOCOL_ERROR
# says: line 2
# rule: utf-8
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
printf '\x00\x01\xff\xfe\x80binary\n'
echo '{"version":"0","type":"done","ok":true}'
