"""Secrets at rest: which columns are sealed, and how their keys are rotated."""
