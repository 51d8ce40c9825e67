"""Contexts, which narrow what a selected scope reaches."""
