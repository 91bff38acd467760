#!/bin/bash
# call: ok
# rule: flush
printf '%s\n' '{"version":"0","type":"log","level":"info","message":"m"}' '{"version":"0","type":"log","level":"info","message":"m"}' '{"version":"0","type":"done","ok":true}' | cat
