#!/bin/bash
# call: ok
# rule: final-newline
printf '%s' '{"version":"0","type":"done","ok":true}'
