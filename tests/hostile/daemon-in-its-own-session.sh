#!/bin/bash
# call: ok
# rule: leaves-nothing
setsid sleep 600 &
echo '{"version":"0","type":"done","ok":true}'
