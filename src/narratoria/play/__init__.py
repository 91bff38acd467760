"""Stories, games and turns: a story, a session and narrators put together, and moved through by turns."""
