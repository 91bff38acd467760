"""The scripted narrator: a story's `narrator.toml`, its patterns and its conditions."""
