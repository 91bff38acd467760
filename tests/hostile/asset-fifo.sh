#!/bin/bash
# call: ok
# rule: asset-file
folder=$(mktemp -d)
mkfifo "$folder/pipe"
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"image/png","path":"'"$folder/pipe"'"}'
echo '{"version":"0","type":"done","ok":true}'
