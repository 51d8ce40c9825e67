"""Deliveries inside the platform's Spark: rows of one snapshot to a staging table or to files."""
