"""The audit log, as members read it."""
