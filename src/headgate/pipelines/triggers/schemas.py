"""API schemas of triggers, also used for storage."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Discriminator, Field, TypeAdapter

from headgate.contracts.pipelines.definitions import TimeZone
from headgate.contracts.pipelines.fields import Duration, Parameters, item_ref
from headgate.kit.cron import MAX_LENGTH, Schedule
from headgate.kit.cron import check as check_cron
from headgate.kit.ids import kind_of
from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText

MOST_SOURCES = 50
NEXT = 5
"""Number of next fire times shown."""


def _table(text: str) -> str:
    return text if kind_of(text) == "table" else item_ref(text)


CronText = Annotated[
    str,
    Field(
        max_length=MAX_LENGTH,
        examples=["0 6 * * 1-5"],
        description="Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly",
    ),
    AfterValidator(check_cron),
]
PipelineRef = Annotated[str, Field(pattern="^pip_[0-9a-z]{20}$", examples=["pip_01k6x3v9c2m4n8p0q7rs"])]
TableText = Annotated[str, Field(max_length=260, examples=["raw.orders"]), AfterValidator(_table)]
Which = Annotated[
    Literal["any", "all"], Field(description="all: wait until each of them has happened since the last fire")
]
AtMostEvery = Annotated[Duration | None, Field(description="Minimum time between fires")]


class Cron(Input):
    """A cron schedule in a time zone. A time skipped by a clock change fires right after it; a repeated time fires
    once.
    """

    kind: Literal["cron"] = "cron"
    cron: CronText
    time_zone: TimeZone = "UTC"
    catch_up: Annotated[
        Literal["skip", "latest", "all"],
        Field(description="How to handle missed fires; all: the last 100 of them"),
    ] = "latest"

    @property
    def schedule(self) -> Schedule:
        """The parsed schedule."""
        return Schedule(self.cron, self.time_zone)


class Succeeded(Input):
    """Fires after other pipelines have succeeded."""

    kind: Literal["pipelines"]
    pipelines: Annotated[tuple[PipelineRef, ...], Field(min_length=1, max_length=MOST_SOURCES)]
    which: Which = "any"
    at_most_every: AtMostEvery = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the trigger."""
        return tuple(dict.fromkeys(self.pipelines))


class Changed(Input):
    """Fires after rows of tables have changed."""

    kind: Literal["tables"]
    tables: Annotated[tuple[TableText, ...], Field(min_length=1, max_length=MOST_SOURCES, description="By name or id")]
    which: Which = "any"
    at_most_every: AtMostEvery = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the trigger; ids once stored."""
        return tuple(dict.fromkeys(self.tables))


When = Annotated[Cron | Succeeded | Changed, Discriminator("kind")]
_WHEN: TypeAdapter[Cron | Succeeded | Changed] = TypeAdapter(When)


def stored_when(spec: dict[str, Any]) -> Cron | Succeeded | Changed:
    """Parse the condition of a stored trigger."""
    return _WHEN.validate_python(spec["when"])


class TriggerIn(Input):
    """A trigger of a pipeline. The member who saves it is its author: each fire is authorized for that member."""

    name: NameText
    when: When
    full_refresh: Annotated[bool, Field(description="Run a full refresh instead of an incremental load")] = False
    parameters: Parameters = Field(default_factory=dict)


class TriggerChange(Input):
    """Changes to a trigger; omitted fields stay unchanged. Any change, even an empty one, makes the caller its
    author.
    """

    name: NameText | None = None
    when: When | None = None
    full_refresh: bool | None = None
    parameters: Parameters | None = None


class PreviewIn(Input):
    """A schedule to preview."""

    cron: CronText
    time_zone: TimeZone = "UTC"


class Preview(BaseModel):
    """The fire times of a schedule."""

    says: str = Field(examples=["At 06:00 on Monday through Friday"])
    next: list[datetime] = Field(description="The next fires, in UTC")


class CronOut(BaseModel):
    """A schedule."""

    kind: Literal["cron"] = "cron"
    cron: str = Field(examples=["0 6 * * 1-5"])
    time_zone: str = Field(examples=["Europe/Berlin"])
    catch_up: str = Field(examples=["latest"])
    says: str = Field(examples=["At 06:00 on Monday through Friday"])


class SourceOut(BaseModel):
    """A pipeline or table that a trigger waits for."""

    id: str = Field(examples=["pip_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Land payments"])
    happened: bool = Field(description="Whether it has happened since the last fire")


class EventOut(BaseModel):
    """The events that a trigger waits for."""

    kind: Literal["pipelines", "tables"]
    sources: list[SourceOut] = Field(description="Those that the caller may see")
    hidden: int = Field(description="The number of those that were deleted or that the caller may not see")
    which: str = Field(examples=["any"])
    at_most_every: str | None = Field(examples=["10 minutes"])


class Person(BaseModel):
    """A member."""

    id: str = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Tess"])


class Fire(BaseModel):
    """A fire of a trigger."""

    due_at: datetime
    at: datetime
    run: str | None = Field(examples=["run_01k6x3v9c2m4n8p0q7rs"])


class TriggerOut(BaseModel):
    """A trigger of a pipeline, limited to what the caller may see."""

    id: str = Field(examples=["plt_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Every morning"])
    pipeline: str = Field(examples=["pip_01k6x3v9c2m4n8p0q7rs"])
    when: Annotated[CronOut | EventOut, Discriminator("kind")] | None = Field(
        description="Null if it was not saved on this installation yet"
    )
    full_refresh: bool
    parameters: dict[str, Any]
    enabled: bool
    paused_because: str | None = Field(description="Why it was paused; null if a member paused it")
    pipeline_active: bool = Field(description="Whether its pipeline is active; otherwise the trigger does not fire")
    pipeline_inactive_because: str | None = Field(
        description="Why its pipeline was deactivated; null if a member did it"
    )
    author: Person | None = Field(description="Who last saved it; null for a removed member")
    next: list[datetime] = Field(description="The next fires of a schedule, in UTC")
    last: Fire | None = Field(description="The last fire")
    created_at: datetime
    updated_at: datetime
    allowed: list[str] = Field(examples=[["see", "manage"]], description="The actions that the caller has on it")


class TriggerShown(TriggerOut):
    """A trigger, and whether it could start its pipeline now."""

    blocked_by: list[str] = Field(description="The access that a fire would lack now, as far as the caller may see it")


class TriggerList(BaseModel):
    """The triggers of a pipeline, by name."""

    items: list[TriggerOut]


class TriggerDeleted(BaseModel):
    """A deleted trigger."""

    id: str
    name: str
