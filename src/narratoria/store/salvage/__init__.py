"""Recovery of sessions from a damaged store."""
