"""Scores of narrators on sets of prompts with the right calls."""
