"""API schemas of secrets and endpoints."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field, SecretStr

from headgate.kit.request_models import Input

ConnectionId = Annotated[str, Path(pattern="^con_[0-9a-z]{20}$", examples=["con_01k6x3v9c2m4n8p0q7rs"])]
DestinationId = Annotated[str, Path(pattern="^dst_[0-9a-z]{20}$", examples=["dst_01k6x3v9c2m4n8p0q7rs"])]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=10_000)]


class SecretsIn(Input):
    """Secrets to store; null deletes one. They are sealed and never returned."""

    password: Secret | None = None
    token: Secret | None = None
    client_secret: Secret | None = None
    secret_key: Secret | None = None

    def given(self) -> dict[str, str | None]:
        """The secrets that the request names."""
        values: dict[str, SecretStr | None] = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value.get_secret_value() if value else None for name, value in values.items()}


class SecretOut(BaseModel):
    """A secret that the endpoint supports."""

    name: str = Field(examples=["password"])
    needed: bool = Field(description="Whether it is required")
    set_at: datetime | None = Field(description="When it was last set; null if it is not set")


class EndpointFieldsOut(BaseModel):
    """The endpoint of a connection or destination."""

    kind: str = Field(examples=["postgresql"])
    config: dict[str, Any] = Field(examples=[{"host": "db.example.com", "port": 5432, "database": "shop"}])
    secrets: list[SecretOut]
    version: int = Field(description="Increases with each change of the host")
    moved_at: datetime = Field(description="When the host last changed")
