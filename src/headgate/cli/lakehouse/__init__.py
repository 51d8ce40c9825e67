"""Commands for layers, tables, volumes, SQL and integrations."""
