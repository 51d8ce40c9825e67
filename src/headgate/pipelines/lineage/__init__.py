"""Lineage of tables and columns."""
