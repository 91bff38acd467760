#!/bin/bash
# call: ok
# rule: newlines
printf '%s\r\n' '{"version":"0","type":"done","ok":true}'
