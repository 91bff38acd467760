"""Prompts, adapters to language models, the agent loop and the planning tools."""
