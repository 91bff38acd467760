"""The memory of a story: lore entries, characters and past turns, recalled for a narrator."""
