"""Helpers for authors: playtests, and recorded sessions as test fixtures."""
