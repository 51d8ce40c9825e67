"""Shared infrastructure of all features."""
