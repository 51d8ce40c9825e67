"""Commands for pipelines, triggers and runs."""
