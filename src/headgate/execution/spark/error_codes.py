"""Error codes shared by the server and its step functions."""

SOURCE_DOWN = "SOURCE_DOWN"
"""A host does not respond; the proxy has a more precise message."""
