"""The organization itself."""
