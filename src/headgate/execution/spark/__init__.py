"""Spark: the only place that imports pyspark."""
