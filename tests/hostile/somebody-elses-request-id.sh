#!/bin/bash
# call: ok
# rule: request-id
echo '{"version":"0","type":"done","ok":true,"requestId":"never-sent"}'
