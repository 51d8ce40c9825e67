"""Data spaces and their content."""
