"""Commands about this machine: Spark and the worker."""
