"""Scheduled maintenance of tables: expire snapshots, remove orphan files, compact small files."""
