"""The narrator that is a language model: what it is told, and how its reply becomes a plan."""
