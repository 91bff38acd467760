#!/bin/bash
# call: ok
# rule: done-once, nothing-after-done
echo '{"version":"0","type":"done","ok":true}'
echo '{"version":"0","type":"done","ok":false}'
