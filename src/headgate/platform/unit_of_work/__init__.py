"""A unit of work: its caller, its transactions, and what it records."""
