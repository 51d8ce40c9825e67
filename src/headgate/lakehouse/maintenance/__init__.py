"""Maintenance of tables by schedule: expire snapshots, remove orphans, compact small files."""
