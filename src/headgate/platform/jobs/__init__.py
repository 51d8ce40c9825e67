"""Workers, whatever kind of work they do."""
