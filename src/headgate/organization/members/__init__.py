"""Members of the organization and the organization itself."""
