"""The company with a catalog that stock clients write tables through."""

from tests.lakehouse.catalog.conftest import served, served_on_sqlite

__all__ = ["served", "served_on_sqlite"]
