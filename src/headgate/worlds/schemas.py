"""Worlds, as the API takes them and reports on them."""

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input


class WorldRequest(Input):
    """A world to test, in a database of its own."""

    world: str = Field(max_length=200_000, description="The text of a world, in YAML")
    name: str = Field("world.yaml", max_length=200, description="What to call it in messages")


class Assertion(BaseModel):
    """One assertion of a world."""

    line: int
    passed: bool
    text: str
    explanation: list[str]


class WorldAnswer(BaseModel):
    """How a world fared."""

    passed: int
    failed: int
    failures: list[Assertion]
