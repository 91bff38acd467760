"""The narrator that leads other words to a story's own rules."""
