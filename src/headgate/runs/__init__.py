"""Triggers and runs."""
