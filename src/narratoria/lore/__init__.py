"""What a story remembers: lore entries, characters and past turns, recalled for a narrator."""
