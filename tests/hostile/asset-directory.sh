#!/bin/bash
# call: ok
# rule: asset-file
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"image/png","path":"'"$TMPDIR"'"}'
echo '{"version":"0","type":"done","ok":true}'
