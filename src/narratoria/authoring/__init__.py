"""Helpers for authors: recorded sessions as test fixtures."""
