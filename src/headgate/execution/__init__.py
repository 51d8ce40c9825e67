"""Everything that runs on a worker: Spark, the sandbox, sources, deliveries and notebooks."""
