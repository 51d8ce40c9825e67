"""Catalog responses."""

import json
from typing import Any

from fastapi import Response


def json_response(body: dict[str, Any], status: int = 200) -> Response:
    """A response with a body."""
    return Response(json.dumps(body, ensure_ascii=False).encode(), status, media_type="application/json")


def empty() -> Response:
    """A success response without a body."""
    return Response(status_code=204)
