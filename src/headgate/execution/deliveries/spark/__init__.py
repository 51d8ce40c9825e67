"""What deliveries do on the platform's Spark: rows of one snapshot into a staging table, or into files."""
