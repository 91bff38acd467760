"""Holds a narration to the state: what it claims, the patch that made it so, and what is told again."""
