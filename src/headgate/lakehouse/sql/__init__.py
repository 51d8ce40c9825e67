"""SQL as a member: statements, their results, saved queries."""
