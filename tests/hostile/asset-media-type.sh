#!/bin/bash
# call: ok
# rule: asset-media-type
file=$(mktemp)
echo '{"version":"0","type":"asset","assetId":"a","kind":"image","mediaType":"picture","path":"'"$file"'"}'
echo '{"version":"0","type":"done","ok":true}'
