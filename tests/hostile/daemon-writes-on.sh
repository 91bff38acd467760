#!/bin/bash
# call: ok
# rule: leaves-nothing, done-once
(while :; do echo '{"version":"0","type":"log","level":"info","message":"m"}'; sleep 0.05; done) &
echo '{"version":"0","type":"done","ok":true}'
