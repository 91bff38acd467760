#!/bin/bash
# call: ok
# rule: bears-unknown-fields
case $(cat) in
*x_future*) echo '{"version":"0","type":"done","ok":false}' ;;
*) echo '{"version":"0","type":"done","ok":true}' ;;
esac
