#!/usr/bin/env python3
# call: OUTPUT_LIMIT
# says: more than 2,000,000 values
# rule: within-limits
import sys

for _ in range(60):
    text = "[]," * 300_000
    print('{"version":"0","type":"state_patch","patch":{"a":[' + text + "0]}}", flush=True)
print('{"version":"0","type":"done","ok":true}', flush=True)
