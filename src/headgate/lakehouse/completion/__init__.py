"""Names and functions for SQL completion."""
