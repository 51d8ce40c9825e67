"""A unit of work: its caller, its transactions, and its audit records."""
