"""The rows of a REST API, read inside Spark's Python workers.

These modules are sent to the workers, where this package may not be installed: they import only the standard library
and each other. `source.py` also imports pyarrow and pyspark, which are installed there.
"""
