#!/bin/bash
# call: ok
# rule: leaves-nothing
(ulimit -x 1000; env -i setsid sleep 600 >/dev/null 2>&1 </dev/null &)
sleep 0.2
echo '{"version":"0","type":"done","ok":true}'
