"""Volumes of the lakehouse."""
