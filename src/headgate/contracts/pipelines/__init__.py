"""Pipeline definitions, and the steps that they compile to."""
