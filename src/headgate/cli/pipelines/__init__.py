"""Commands on pipelines, triggers and runs."""
