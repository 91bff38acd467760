#!/bin/bash
# call: ok
# rule: choices
echo '{"version":"0","type":"ui_event","event":"narrative_choice","payload":{"choices":"Leave"}}'
echo '{"version":"0","type":"done","ok":true}'
