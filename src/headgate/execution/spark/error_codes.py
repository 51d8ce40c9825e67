"""Codes of failures that the engine and its functions share."""

SOURCE_DOWN = "SOURCE_DOWN"
"""A host does not answer: the proxy knows better words for it."""
