"""Where sessions are kept: the journal, SQLite, PostgreSQL, export and import."""
