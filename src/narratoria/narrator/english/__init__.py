"""The one place that reads English: words, clauses, moods, numbers, and the things a prompt names."""
