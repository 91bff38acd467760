#!/bin/bash
# call: ok
# rule: timestamp
echo '{"version":"0","type":"done","ok":true,"timestamp":"yesterday evening"}'
