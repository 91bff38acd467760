#!/bin/bash
# call: PROTOCOL_ERROR
# says: did you mean 'state_patch'
# rule: type
echo '{"version":"0","type":"statepatch","patch":{}}'
echo '{"version":"0","type":"done","ok":true}'
