"""Deleted layers, tables and volumes, until they are purged."""
