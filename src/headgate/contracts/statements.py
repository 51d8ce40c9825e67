"""What workers and the server tell one another. A worker that is newer may say more than the server knows."""

from typing import Annotated, Any, Literal

from pydantic import Base64Bytes, BaseModel, Field

from headgate.contracts.jobs import Count, Fence, ProgressOut, WorkerId, WorkerIn
from headgate.kit.request_models import LooseInput

StatementId = Annotated[str, Field(pattern=r"^stm_[0-9a-z]{20}$", examples=["stm_01k6x3v9c2m4n8p0q7rs"])]


class ColumnOut(BaseModel):
    """A column of a result."""

    name: str = Field(examples=["amount"])
    type: str = Field(examples=["decimal128(10, 2)"], description="Its Arrow type")
    nullable: bool = True


class Job(BaseModel):
    """A statement to run."""

    id: str
    fence: int
    purpose: str = Field(examples=["statement"], description="`statement`, or `probe`: analyse only")
    sql: str
    token: str = Field(description="For the catalog; it is stored nowhere")
    user: str = Field(description="Whom `current_user()` names: the member's mail address, or name if there is none")
    max_rows: int
    more: list[str] = Field(default_factory=list, description="Of a probe: what else it analyses")
    tells: bool = Field(default=False, description="Of a probe: whether it tells what its SQL would give")
    windowed: bool = Field(default=False, description="Of a probe: whether its SQL may name the ends of a window")
    isolated: bool = Field(default=False, description="Spark was lost under it: it runs on a server of its own")


class Claims(BaseModel):
    """Statements for a worker, and the limits that hold for them."""

    jobs: list[Job]
    statement_seconds: float
    max_bytes: int
    page_bytes: int = Field(description="The largest page that the server takes")


class StatementProgressIn(LooseInput):
    """How far a statement has come."""

    id: StatementId
    fence: Fence
    progress: ProgressOut | None = None


class HeartbeatIn(WorkerIn):
    """A worker that lives, and what it runs."""

    running: list[StatementProgressIn] = Field(max_length=256)


class AnalysedIn(LooseInput):
    """What the SQL of a probe would give."""

    worker: WorkerId
    fence: Fence
    columns: list[dict[str, Any]] | None = Field(
        None, max_length=10_000, description="As the fields of an Iceberg schema; null if no table can hold them"
    )
    problem: Annotated[str, Field(max_length=10_000)] | None = Field(
        None, description="Why no table can hold the columns, and what to do"
    )
    origins: list[tuple[str, list[tuple[str, str]]]] = Field(
        default_factory=list,
        max_length=10_000,
        description="Of each column, the tables and columns whose values it is made of",
    )


class FinishIn(LooseInput):
    """What came of a statement."""

    worker: WorkerId
    fence: Fence
    state: Literal["succeeded", "failed", "lost", "returned"]
    columns: list[ColumnOut] | None = Field(None, max_length=10_000)
    rows: Count | None = None
    bytes: Count | None = None
    pages: Annotated[int, Field(ge=0, le=10**7)] | None = None
    truncated: bool | None = None
    first_page: Base64Bytes | None = Field(None, description="Arrow, in base64")
    error_code: Annotated[str, Field(max_length=1000)] | None = None
    error: Annotated[str, Field(max_length=1_000_000)] | None = None


class Finished(BaseModel):
    """The state of a statement after its worker's word."""

    state: str = Field(examples=["succeeded"])


class ColumnsRecorded(BaseModel):
    """A probe whose columns are known."""

    id: str


class Stored(BaseModel):
    """A page that is safe."""

    number: int
    bytes: int
