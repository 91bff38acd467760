#!/bin/bash
# call: PROTOCOL_ERROR
# says: ok
# rule: done-fields
echo '{"version":"0","type":"done","ok":"yes"}'
