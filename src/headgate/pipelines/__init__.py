"""Pipelines, in a data project or without one."""
