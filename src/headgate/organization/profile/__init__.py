"""The organization itself, and what everything with a name of its own in it shares."""
