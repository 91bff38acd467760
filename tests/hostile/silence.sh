#!/bin/bash
# call: MISSING_DONE
# says: without a `done`
# rule: done-once
cat >/dev/null
