"""Secrets at rest: the sealed columns, and key rotation."""
