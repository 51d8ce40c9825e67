"""Names and functions that an SQL editor completes."""
