#!/bin/bash
# call: PROTOCOL_ERROR
# says: version
# rule: version
echo '{"version":"1","type":"done","ok":true}'
