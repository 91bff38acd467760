"""Tools that are executables: launched, supervised, read line by line, and ended for certain."""
