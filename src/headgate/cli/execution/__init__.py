"""Commands for this machine: Spark and the worker."""
