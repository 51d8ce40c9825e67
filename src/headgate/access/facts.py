"""The facts a decision is about: a member at a moment, and a resource with what it hangs on."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from headgate.kit.ids import ALL_GROUP

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Subject:
    """A member as decisions see them: who they are, at this moment, in this organization."""

    id: str
    role: str
    now: datetime
    plan: str = "growth"
    entire: bool = True
    contexts: frozenset[str] = NOBODY
    groups: frozenset[str] = NOBODY
    security_roles: frozenset[str] = NOBODY
    name: str = ""
    operator: bool = False
    keys: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", self.groups | {self.id, ALL_GROUP})


class Grant(NamedTuple):
    """A level for a member or group, until its end."""

    grantee: str
    level: int
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """What all resources have."""

    kind: ClassVar[str]
    id: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization(Thing):
    kind: ClassVar[str] = "organization"
    plan: str = "growth"
    invites: str = "by-role"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberThing(Thing):
    """A member as the target of an action; `new_role` is the role that a change would give."""

    kind: ClassVar[str] = "member"
    role: str
    last_owner: bool = False
    new_role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shareable(Thing):
    shared_for_use: bool = False
    shared_for_maintenance: bool = False
    contexts: frozenset[str] = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage(Shareable):
    kind: ClassVar[str] = "storage"
    owners: frozenset[str] = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination(Shareable):
    kind: ClassVar[str] = "destination"
    owners: frozenset[str] = NOBODY
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer(Thing):
    """A layer; `inner` are the grants on tables and volumes in it."""

    kind: ClassVar[str] = "layer"
    grants: tuple[Grant, ...] = ()
    inner: tuple[Grant, ...] = ()

    @property
    def reach(self) -> tuple[Grant, ...]:
        """Every grant that counts for the level on it."""
        return self.grants

    @property
    def known(self) -> bool:
        """Whether there is data that a level could be about."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Thing):
    """A table or volume, or the name of one that does not exist: then it has no id and counts as its layer."""

    kind: ClassVar[str] = "ref"
    layer: Layer | None = None
    grants: tuple[Grant, ...] = ()
    reach: tuple[Grant, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", self.grants + (self.layer.grants if self.layer else ()))

    @property
    def known(self) -> bool:
        """Whether there is data that a level could be about."""
        return self.layer is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Item):
    kind: ClassVar[str] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume(Item):
    kind: ClassVar[str] = "volume"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantDraft(Thing):
    """A grant that someone is about to make or take back on a layer, table or volume."""

    kind: ClassVar[str] = "grant"
    resource: Layer | Item
    to: str
    level: int
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataMart(Shareable):
    """A data mart; as a draft, `new_storage` is where it is being pointed and `judged` what it will read."""

    kind: ClassVar[str] = "data_mart"
    technical_owners: frozenset[str] = NOBODY
    business_owners: frozenset[str] = NOBODY
    published: bool = False
    storage: Storage | None = None
    reads: tuple[Item, ...] = ()
    acts_for: Subject | None = None
    new_storage: tuple[Storage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Thing):
    """A report; as a draft, `new_data_mart` and `new_destination` are where it is being pointed."""

    kind: ClassVar[str] = "report"
    owners: frozenset[str] = NOBODY
    data_mart: DataMart | None = None
    destination: Destination | None = None
    acts_for: Subject | None = None
    new_data_mart: tuple[DataMart | None, ...] = ()
    new_destination: tuple[Destination | None, ...] = ()

    @property
    def mart_reads(self) -> tuple[Item, ...]:
        return self.data_mart.reads if self.data_mart else ()

    @property
    def mart_acts_for(self) -> Subject | None:
        return self.data_mart.acts_for if self.data_mart else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Space(Thing):
    """A data space; `roles` are what each member or group holds in it."""

    kind: ClassVar[str] = "space"
    owner: str | None = None
    personal: bool = False
    roles: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Thing):
    kind: ClassVar[str] = "gateway"
    space: Space | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Thing):
    kind: ClassVar[str] = "connection"
    space: Space | None = None
    owner: str | None = None
    gateway: Gateway | None = None
    allows_code: bool = False
    new_space: tuple[Space | None, ...] = ()

    @property
    def gateways(self) -> tuple[Gateway, ...]:
        return (self.gateway,) if self.gateway else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Thing):
    kind: ClassVar[str] = "project"
    space: Space | None = None
    owner: Subject | None = None
    target: Connection | None = None


class Stream(NamedTuple):
    """A table that a pipeline reads or writes; `added` if the save being judged adds or retargets it."""

    item: Item
    writes: bool
    enabled: bool = True
    added: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(Thing):
    """What a pipeline and a data task share: a definition of what is read, written and connected."""

    pipeline_kind: str | None = None
    streams: tuple[Stream, ...] = ()
    output_layer: Layer | None = None
    destination: Destination | None = None
    connections: tuple[Connection, ...] = ()
    acts_for: Subject | None = None

    @property
    def counted(self) -> tuple[Item, ...]:
        """What its access derives from: the tables of enabled streams."""
        return tuple(s.item for s in self.streams if s.enabled)

    @property
    def added(self) -> tuple[Item, ...]:
        return tuple(s.item for s in self.streams if s.added)

    @property
    def enabled_reads(self) -> tuple[Item, ...]:
        return tuple(s.item for s in self.streams if s.enabled and not s.writes)

    @property
    def enabled_writes(self) -> tuple[Item, ...]:
        return tuple(s.item for s in self.streams if s.enabled and s.writes)

    @property
    def judged_reads(self) -> tuple[Item, ...]:
        """What a save of this definition is judged for: enabled streams, and those it adds."""
        return tuple(s.item for s in self.streams if (s.enabled or s.added) and not s.writes)

    @property
    def judged_writes(self) -> tuple[Item, ...]:
        return tuple(s.item for s in self.streams if (s.enabled or s.added) and s.writes)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        return (self.destination,) if self.destination else ()

    @property
    def used_connections(self) -> tuple[Connection, ...]:
        return self.connections

    @property
    def gateways(self) -> tuple[Gateway, ...]:
        return tuple(c.gateway for c in self.connections if c.gateway)

    @property
    def used_gateways(self) -> tuple[Gateway, ...]:
        return tuple(c.gateway for c in self.used_connections if c.gateway)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Flow):
    """A pipeline without a data project."""

    kind: ClassVar[str] = "pipeline"

    @property
    def new_outputs(self) -> tuple[Item, ...]:
        """Outputs being added that do not exist yet."""
        return tuple(s.item for s in self.streams if s.added and s.writes and s.item.id is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Flow):
    """A pipeline in a data project."""

    kind: ClassVar[str] = "task"
    project: Project | None = None
    owner: str | None = None

    @property
    def used_connections(self) -> tuple[Connection, ...]:
        target = self.project.target if self.project else None
        return (*self.connections, target) if target else self.connections

    @property
    def project_owner(self) -> Subject | None:
        return self.project.owner if self.project else None

    @property
    def outputs(self) -> tuple["Output", ...]:
        """The enabled output tables that exist, each with those who could lend its rows."""
        return tuple(
            Output(
                id=item.id,
                name=item.name,
                layer=item.layer,
                grants=item.grants,
                acts_for=self.acts_for,
                project_owner=self.project_owner,
            )
            for item in self.enabled_writes
            if isinstance(item, Table)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Item):
    """An output table of a task, with who last saved the task and who owns its project."""

    acts_for: Subject | None = None
    project_owner: Subject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration(Thing):
    kind: ClassVar[str] = "integration"
    counted: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQuery(Thing):
    kind: ClassVar[str] = "saved_query"
    author: str | None = None
    reads: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger(Thing):
    """A trigger; `parent` is the mart, report, pipeline or task that it starts."""

    parent: Any = None
    author: Subject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataMartTrigger(Trigger):
    kind: ClassVar[str] = "data_mart_trigger"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTrigger(Trigger):
    kind: ClassVar[str] = "report_trigger"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineTrigger(Trigger):
    kind: ClassVar[str] = "pipeline_trigger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Thing):
    kind: ClassVar[str] = "run"
    parent: Any = None
