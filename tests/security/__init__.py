"""Attacks on the whole product: a member with few rights, the API, a worker, Spark, the catalog and the files."""
