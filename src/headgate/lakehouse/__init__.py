"""Layers, tables, volumes, grants, and what reads them."""
