"""The Iceberg REST catalog: every table through one door, with the rights of the token that asks."""
