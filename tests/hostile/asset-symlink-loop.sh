#!/bin/bash
# call: ok
# rule: asset-file
folder=$(mktemp -d)
ln -s loop "$folder/loop"
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"image/png","path":"'"$folder/loop"'"}'
echo '{"version":"0","type":"done","ok":true}'
