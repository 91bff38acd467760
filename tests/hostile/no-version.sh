#!/bin/bash
# call: PROTOCOL_ERROR
# says: version
# rule: version
echo '{"type":"done","ok":true}'
