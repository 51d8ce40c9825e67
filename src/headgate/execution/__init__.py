"""What a worker runs: Spark, the sandbox, sources, deliveries and notebooks."""
