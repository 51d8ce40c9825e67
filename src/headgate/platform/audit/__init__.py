"""The append-only audit log of decisions and changes."""
