"""Layers of the lakehouse."""
