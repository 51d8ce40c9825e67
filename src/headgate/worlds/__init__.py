"""Access cases as files: loaded, tested and exported."""
