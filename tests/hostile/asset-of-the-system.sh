#!/bin/bash
# call: ok
# rule: asset-file
echo '{"version":"0","type":"asset","assetId":"a","kind":"text","mediaType":"text/plain","path":"/proc/self/status"}'
echo '{"version":"0","type":"done","ok":true}'
