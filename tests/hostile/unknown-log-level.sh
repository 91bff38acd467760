#!/bin/bash
# call: PROTOCOL_ERROR
# says: level
# rule: log-fields
echo '{"version":"0","type":"log","level":"fatal","message":"m"}'
echo '{"version":"0","type":"done","ok":true}'
