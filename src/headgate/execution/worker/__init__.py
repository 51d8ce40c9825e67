"""The worker: claims statements from the server, runs them on Spark, and sends their rows back."""
