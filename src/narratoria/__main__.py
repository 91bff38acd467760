"""`python -m narratoria` is the command line."""

from narratoria.cli import main

main()
