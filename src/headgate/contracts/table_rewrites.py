"""Messages between workers and the server about table rewrites."""

from typing import Annotated

from pydantic import BaseModel, Field

from headgate.kit.request_models import LooseInput


class RewritePayload(BaseModel):
    """A table to rewrite."""

    table_id: str
    token: str = Field(description="Valid for this table, on /iceberg alone, while the job runs", repr=False)
    layer: str
    name: str
    min_files: int
    target_mib: int


class RewriteResult(LooseInput):
    """The result of a table rewrite."""

    files_before: Annotated[int, Field(ge=0, le=1 << 31)]
    files_after: Annotated[int, Field(ge=0, le=1 << 31)]
