"""Narrators: whatever reads a prompt and answers with a plan, and the chain that asks them in turn."""
