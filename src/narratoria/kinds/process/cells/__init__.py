"""Cells: processes that put up the walls of a profile around themselves, and start the tools inside."""
