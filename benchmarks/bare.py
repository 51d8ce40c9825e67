"""The peer of benchmarks/requests.py: a bare FastAPI application, one raw query a route, no identity or check."""

import os
import threading
from typing import Any

from fastapi import FastAPI

URL = os.environ["BARE_DATABASE"]
app = FastAPI()
_local = threading.local()

_ONE = "SELECT id, kind, name, created_at, updated_at, created_by_id FROM resources WHERE id = {p}"
_PAGE = (
    "SELECT id, kind, name, created_at, updated_at, created_by_id FROM resources "
    "WHERE namespace = 'data_mart' AND scope_id = '' ORDER BY name_key LIMIT 50"
)
_MARK = "?" if URL.startswith("sqlite") else "%s"


def _connection() -> Any:
    if not hasattr(_local, "connection"):
        if URL.startswith("sqlite"):
            import sqlite3

            _local.connection = sqlite3.connect(URL.removeprefix("sqlite:///"))
        else:
            import psycopg

            _local.connection = psycopg.connect(URL, autocommit=True)
    return _local.connection


def _shown(row: Any) -> dict[str, Any]:
    names = ("id", "kind", "name", "created_at", "updated_at", "created_by")
    return dict(zip(names, row, strict=True))


@app.get("/one/{identifier}")
def one(identifier: str) -> dict[str, Any]:
    return _shown(_connection().execute(_ONE.format(p=_MARK), (identifier,)).fetchone())


@app.get("/page")
def page() -> list[dict[str, Any]]:
    return [_shown(row) for row in _connection().execute(_PAGE).fetchall()]
