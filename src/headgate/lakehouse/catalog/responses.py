"""Answers of the catalog."""

import json
from typing import Any

from fastapi import Response


def json_response(body: dict[str, Any], status: int = 200) -> Response:
    """An answer with a body."""
    return Response(json.dumps(body, ensure_ascii=False).encode(), status, media_type="application/json")


def empty() -> Response:
    """Done, and nothing more to say."""
    return Response(status_code=204)
