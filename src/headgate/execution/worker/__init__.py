"""The worker: claims jobs of every kind from the server, runs them, and reports their progress and result."""
