"""Bodies of requests: what every text in them must be, and that they hold no field that nobody reads."""

import math
from difflib import get_close_matches
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

_MOST = 100_000
_LONGEST_BITS = 1000
_LONGEST_NAME = 100
_MOST_NAMES = 10


def check_texts(body: Any) -> None:
    """Refuse texts and numbers that no database and no answer can hold."""
    pending, visited = [body], 0
    while pending:
        value = pending.pop()
        visited += 1
        if visited > _MOST:
            raise ValueError(f"contains more than {_MOST} values")
        if isinstance(value, str):
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                raise ValueError("a string contains a NUL character or an unpaired surrogate")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError("a number is too large, NaN or Infinity, which JSON does not support")
        elif isinstance(value, int) and value.bit_length() > _LONGEST_BITS:
            raise ValueError("a number has more than 300 digits")
        elif isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value


class Input(BaseModel):
    """The body of a request. A field that it does not know is refused: it would be a slip, and do nothing."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if isinstance(value, dict):
            check_texts(value)
            if cls.model_config.get("extra") == "forbid":
                _check_fields(cls, value)
        return value


class LooseInput(Input):
    """A body whose fields that we do not know are ignored: its sender may be newer, or of another house."""

    model_config = ConfigDict(extra="ignore")


def _check_fields(model: type[BaseModel], value: dict[str, Any]) -> None:
    """Refuse fields that a body does not have, each with the one that may be meant."""
    known_names = _fields(model)
    unknown = [name for name in value if name not in known_names]
    if unknown:
        errors = [_slip(name, known_names, value[name]) for name in unknown[:_MOST_NAMES]]
        raise ValidationError.from_exception_data(model.__name__, errors)


def _fields(model: type[BaseModel]) -> list[str]:
    """The names that the fields of a body go by."""
    names: list[str] = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        if isinstance(alias, AliasChoices):
            names += [str(choice) for choice in alias.choices]
        else:
            names.append(str(alias or name))
    return names


def _slip(name: str, known_names: list[str], value: Any) -> InitErrorDetails:
    close = get_close_matches(name.lower(), known_names, 1)
    meant = (
        f"did you mean {close[0]}?"
        if close
        else f"the fields are {', '.join(known_names)}"
        if known_names
        else "remove it"
    )
    error = PydanticCustomError("unknown_field", "is an unknown field; {meant}", {"meant": meant})
    return InitErrorDetails(type=error, loc=(name[:_LONGEST_NAME],), input=value)
