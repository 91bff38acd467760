#!/bin/bash
# call: PROTOCOL_ERROR
# says: complete JSON object
# rule: ndjson
echo '{'
echo '  "version": "0", "type": "done", "ok": true'
echo '}'
