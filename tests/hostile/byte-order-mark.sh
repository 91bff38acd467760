#!/bin/bash
# call: PROTOCOL_ERROR
# says: byte order mark
# rule: utf-8
printf '\xef\xbb\xbf'
echo '{"version":"0","type":"state_patch","patch":{"hp":0,"ruined":true}}'
echo '{"version":"0","type":"done","ok":true}'
