#!/bin/bash
# call: ok
# rule: asset-id
file=$(mktemp)
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"text/plain","path":"'"$file"'"}'
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"text/plain","path":"'"$file"'"}'
echo '{"version":"0","type":"done","ok":true}'
