"""Messages between workers and the server about SQL statements. A newer worker may send additional fields."""

from typing import Annotated, Any

from pydantic import Base64Bytes, BaseModel, Field

from headgate.contracts.jobs import Count, Fence, WorkerId
from headgate.kit.request_models import LooseInput


class ColumnOut(BaseModel):
    """A column of a result."""

    name: str = Field(examples=["amount"])
    type: str = Field(examples=["decimal128(10, 2)"], description="Its Arrow type")
    nullable: bool = True


class StatementPayload(BaseModel):
    """A statement to run."""

    purpose: str = Field(examples=["statement"], description="`statement`, or `probe`: analyze only")
    sql: str
    token: str = Field(description="A catalog token, which is not stored", repr=False)
    user: str = Field(description="What `current_user()` returns: the member's email address, else their name")
    max_rows: int
    max_bytes: int = Field(description="The largest result that is kept")
    page_bytes: int = Field(description="The maximum size of a page")
    more: list[str] = Field(default_factory=list, description="Of a probe: further SQL to analyse")
    tells: bool = Field(default=False, description="Of a probe: whether to report the columns of its SQL")
    windowed: bool = Field(default=False, description="For a probe: whether its SQL may use the window parameters")


class StatementResult(LooseInput):
    """The result of a statement; empty for a probe."""

    columns: list[ColumnOut] | None = Field(None, max_length=10_000)
    rows: Count | None = None
    bytes: Count | None = None
    pages: Annotated[int, Field(ge=0, le=10**7)] | None = None
    truncated: bool | None = None
    first_page: Base64Bytes | None = Field(None, description="Arrow, in base64")


class AnalysedIn(LooseInput):
    """The columns of a probe's SQL."""

    worker: WorkerId
    fence: Fence
    columns: list[dict[str, Any]] | None = Field(
        None, max_length=10_000, description="As the fields of an Iceberg schema; null if tables do not support them"
    )
    problem: Annotated[str, Field(max_length=10_000)] | None = Field(
        None, description="Why tables do not support the columns, and what to do"
    )
    origins: list[tuple[str, list[tuple[str, str]]]] = Field(
        default_factory=list,
        max_length=10_000,
        description="For each column, the tables and columns from which its values are made",
    )


class ColumnsRecorded(BaseModel):
    """The probe whose columns were stored."""

    id: str


class Stored(BaseModel):
    """A stored page."""

    number: int
    bytes: int
