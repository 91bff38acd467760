#!/bin/bash
# call: ok
# rule: error-then-failure
echo '{"version":"0","type":"error","errorCode":"OOPS","errorMessage":"it went wrong"}'
echo '{"version":"0","type":"done","ok":true}'
