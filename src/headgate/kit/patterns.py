"""Texts of a given form, with a sentence that says which."""

from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class TextPattern:
    """A text that matches a pattern. Whoever sends another one is told `must`, which goes on from the field's name."""

    pattern: str
    must: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The pattern for the schema of the API, the sentence for people."""
        del source, handler
        text = core_schema.str_schema(pattern=self.pattern)
        return core_schema.custom_error_schema(text, custom_error_type="form", custom_error_message=self.must)
