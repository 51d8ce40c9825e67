"""Column types and schemas of tables."""
