"""Sandboxes: bubblewrap, limits, and the processes inside."""
