"""Access requests and their answers."""
