"""Agent Skills: folders with a SKILL.md, found, checked, and made tools and guidance of."""
