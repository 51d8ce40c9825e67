"""Configurations of external systems by kind."""
