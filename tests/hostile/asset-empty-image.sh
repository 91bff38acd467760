#!/bin/bash
# call: ok
# rule: asset-content
file=$(mktemp)
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"image/png","path":"'"$file"'"}'
echo '{"version":"0","type":"done","ok":true}'
