"""Sentences to vectors: the MiniLM model in numpy, and texts embedded in the background."""
