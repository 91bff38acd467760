"""Kinds of tool: factories that return a `Tool`, from a function, an executable or other tools."""
