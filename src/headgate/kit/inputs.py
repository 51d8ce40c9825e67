"""Bodies of requests: what every text in them must be."""

from typing import Any

from pydantic import BaseModel, model_validator

_MOST = 100_000


def check_texts(value: Any) -> None:
    """Refuse texts that no database and no answer can hold: with half a character, or the character zero."""
    pending, seen = [value], 0
    while pending:
        found = pending.pop()
        seen += 1
        if seen > _MOST:
            raise ValueError(f"holds more than {_MOST} values")
        if isinstance(found, str):
            if "\0" in found or any("\ud800" <= c <= "\udfff" for c in found):
                raise ValueError("a text holds the character zero, or half of a surrogate pair")
        elif isinstance(found, dict):
            pending += [*found, *found.values()]
        elif isinstance(found, list):
            pending += found


class Input(BaseModel):
    """The body of a request."""

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if isinstance(value, dict):
            check_texts(value)
        return value
