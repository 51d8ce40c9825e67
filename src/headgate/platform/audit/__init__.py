"""The append-only record of decisions and changes."""
