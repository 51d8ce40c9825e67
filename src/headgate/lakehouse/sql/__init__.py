"""Members' SQL: statements, results and saved queries."""
