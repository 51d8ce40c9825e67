"""Commands on destinations."""
