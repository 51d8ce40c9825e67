"""The Iceberg REST catalog. Every access to a table goes through it, with the rights of the request's token."""
