"""Commands on layers, tables, volumes, SQL and integrations."""
