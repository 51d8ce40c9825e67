"""Jobs and workers, for all kinds of work."""
