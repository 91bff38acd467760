#!/bin/bash
# call: ok
# rule: leaves-nothing, done-once
log='{"version":"0","type":"log","level":"info","message":"m"}'
trap 'written=1' USR1
echo '{"version":"0","type":"done","ok":true}'
(echo "$log"; kill -USR1 $$; while :; do sleep 0.05; echo "$log"; done) &
until [ -n "${written-}" ]; do sleep 0.01; done
