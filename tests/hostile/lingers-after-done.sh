#!/bin/bash
# call: ok
# rule: ends-promptly
echo '{"version":"0","type":"done","ok":true}'
exec sleep 600
