"""Layers, tables, volumes and grants of the lakehouse, and the consumers of its data."""
