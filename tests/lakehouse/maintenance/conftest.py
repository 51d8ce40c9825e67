"""The company's lake, on each kind of database, and in a bucket."""

from tests.lakehouse.catalog.conftest import on_bucket, served, served_on_sqlite

__all__ = ["on_bucket", "served", "served_on_sqlite"]
