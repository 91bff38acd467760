"""Storage of sessions: the journal, SQLite, PostgreSQL, export and import."""
