"""The logger that every module uses: events with fields."""

import sys
from typing import Any

# structlog loads rich, and with it a syntax highlighter, for tracebacks that we never print. Not finding it saves every
# process a fifth of a second at its start.
_hidden = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
try:
    import structlog
finally:
    del sys.modules["rich"]
    if _hidden is not None:
        sys.modules["rich"] = _hidden


def get_logger(name: str) -> Any:
    """A logger of this name."""
    return structlog.get_logger(name)


__all__ = ["get_logger", "structlog"]
