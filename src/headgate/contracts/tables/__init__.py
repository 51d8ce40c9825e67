"""Column types and shapes of tables."""
