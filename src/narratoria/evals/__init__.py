"""How well a narrator understands: sets of prompts with the right calls, and the score of a narrator on them."""
