"""API schemas of layers, tables and volumes."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from headgate.kit.names import MAX_LENGTH, is_text
from headgate.kit.request_models import Input
from headgate.lakehouse.names import SqlName
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.schemas import Creator

MAX_DESCRIPTION = 10_000
MAX_FIELDS = 1000
NEXT = "Pass as `cursor` to get the next page; null on the last page"
_LINES = str.maketrans("", "", "\n\t\r")


def _title(text: str | None) -> str | None:
    cleaned = text.strip() if text else ""
    if not is_text(cleaned):
        raise ValueError("a title cannot contain control characters")
    return cleaned or None


def _description(text: str | None) -> str | None:
    cleaned = text.strip() if text else ""
    if not is_text(cleaned.translate(_LINES)):
        raise ValueError("a description cannot contain control characters except line breaks and tabs")
    return cleaned or None


Title = Annotated[
    str | None,
    Field(max_length=MAX_LENGTH, examples=["Orders"], description="For display; null removes it"),
    AfterValidator(_title),
]
Description = Annotated[
    str | None,
    Field(max_length=MAX_DESCRIPTION, examples=["One row an order line."], description="Null removes it"),
    AfterValidator(_description),
]


class LakeResource(BaseModel):
    """A layer, table or volume, with the caller's actions on it."""

    id: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["table"])
    name: str = Field(examples=["raw.orders"], description="Of a table or volume, with its layer")
    layer: Named | None = Field(description="Null for a layer")
    title: str | None = Field(examples=["Orders"])
    description: str | None = Field(examples=["One row an order line."])
    created_at: datetime
    updated_at: datetime
    created_by: Creator | None = Field(description="Null for a removed member, and for the initial layers")
    allowed: tuple[str, ...] = Field(examples=[["see", "execute"]], description="The caller's actions")
    via: tuple[str, ...] = Field(examples=[["Viewer"]], description="The access paths that grant them")


class LakePage(BaseModel):
    """A page of layers, tables or volumes."""

    items: list[LakeResource]
    next_cursor: str | None = Field(description=NEXT)


class NewLayer(Input):
    """A layer to create."""

    name: SqlName
    title: Title = None
    description: Description = None


class NewVolume(NewLayer):
    """A volume to create."""

    layer: str = Field(max_length=200, examples=["raw"], description="The layer, by name or id")


class _Patch(Input):
    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("the request changes nothing; give at least one field")
        return self

    def texts(self) -> dict[str, str | None]:
        """The given texts; null removes a text."""
        return {name: getattr(self, name) for name in ("title", "description") if name in self.model_fields_set}


class LayerPatch(_Patch):
    """Changes to a layer; omitted fields stay unchanged."""

    name: SqlName | None = None
    title: Title = None
    description: Description = None


class VolumePatch(LayerPatch):
    """Changes to a volume; omitted fields stay unchanged."""

    layer: str | None = Field(None, max_length=200, examples=["trusted"], description="The new layer, by name or id")


class FieldPatch(_Patch):
    """Changes to a field of a table, identified by path or id."""

    name: str | None = Field(None, max_length=1000, examples=["address.city"])
    id: int | None = Field(None, examples=[3], description="The Iceberg field id, which is stable across renames")
    title: Title = None
    description: Description = None

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if (self.name is None) == (self.id is None):
            raise ValueError("give either the name or the id of the field")
        if not self.texts():
            raise ValueError("give a title, a description, or both")
        return self


class TablePatch(VolumePatch):
    """Changes to a table; omitted fields stay unchanged."""

    fields: list[FieldPatch] = Field([], max_length=MAX_FIELDS, description="Titles and descriptions of its fields")


class LakeDeleted(BaseModel):
    """A deleted layer, table or volume, and how long it can be restored."""

    id: str = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["table"])
    name: str = Field(examples=["raw.orders"])
    deleted_at: datetime
    deleted_by: Named | None
    restore_until: datetime = Field(description="When it is deleted permanently")


class DeletedPage(BaseModel):
    """A page of deleted items, newest first."""

    items: list[LakeDeleted]
    next_cursor: str | None = Field(description=NEXT)


class Restore(Input):
    """Options of a restore."""

    name: SqlName | None = Field(None, description="A new name, if the old one is in use")


class GrantOut(BaseModel):
    """A grant."""

    id: str = Field(examples=["grt_01k6x3v9c2m4n8p0q7rs"])
    to: Named = Field(description="A member, or a group")
    to_kind: str = Field(examples=["group"], description="member or group")
    level: str = Field(examples=["viewer"])
    expires_at: datetime | None
    ended: bool = Field(description="Whether it has expired; then it grants nothing")
    on: Named = Field(description="The resource of the grant: this one or, for a table or volume, its layer")
    inherited: bool = Field(description="Whether the grant is on the layer")
    created_at: datetime
    created_by: Named | None


class GrantPage(BaseModel):
    """A page of grants: those on the resource itself, and those on its layer."""

    items: list[GrantOut]
    next_cursor: str | None = Field(description=NEXT)


class ColumnOut(BaseModel):
    """A column of a table, or a nested field."""

    id: int = Field(description="The Iceberg field id")
    name: str = Field(examples=["city"])
    path: str = Field(examples=["address.city"])
    type: str = Field(examples=["decimal(12, 2)"])
    required: bool
    doc: str | None = Field(description="The comment in the table's schema")
    title: str | None
    description: str | None
    fields: list["ColumnOut"] = Field(
        description="The fields of a struct, the element of a list, the key and value of a map"
    )


class PartitionOut(BaseModel):
    """A partition field of a table."""

    name: str = Field(examples=["ordered_at_day"])
    column: str | None = Field(examples=["ordered_at"])
    transform: str = Field(examples=["day"])


class SortOut(BaseModel):
    """A sort field of a table."""

    column: str | None = Field(examples=["ordered_at"])
    transform: str = Field(examples=["identity"])
    direction: str = Field(examples=["asc"])
    nulls: str = Field(examples=["nulls-first"])


class SnapshotOut(BaseModel):
    """A snapshot of a table."""

    id: str = Field(examples=["3051729675574597004"])
    parent: str | None
    at: datetime
    operation: str | None = Field(examples=["append"])
    is_current: bool
    rows: int | None = Field(description="The number of rows")
    files: int | None
    bytes: int | None
    added_rows: int | None
    deleted_rows: int | None


class SnapshotPage(BaseModel):
    """A page of a table's snapshots, newest first."""

    items: list[SnapshotOut]
    next_cursor: str | None = Field(description=NEXT)


class ViewOut(BaseModel):
    """The view-specific fields of a table."""

    sql: str | None = Field(description="Its SQL; null if you may not read everything that it reads")
    saved_at: datetime
    saved_by: Named | None


class TableOut(LakeResource):
    """A table, with the facts about its data. Fields that are unknown before the first commit are null."""

    format_version: int | None = Field(examples=[2])
    columns: list[ColumnOut]
    partitions: list[PartitionOut]
    sort_order: list[SortOut]
    properties: dict[str, str] = Field(description="The table's own properties, without file locations")
    rows: int | None
    bytes: int | None
    files: int | None
    snapshots: int = Field(description="The number of snapshots; /snapshots lists them")
    snapshot: SnapshotOut | None = Field(description="The current snapshot")
    committed_at: datetime | None
    committed_by: Named | None
    view: ViewOut | None = Field(None, description="Null for a table that has never been written")


class CommitOut(BaseModel):
    """A commit to a table."""

    version: int = Field(description="The number of commits")
    at: datetime
    by: Named | None = Field(description="Null for a removed member")
    operation: str = Field(examples=["append"])
    snapshot: str | None = Field(examples=["3051729675574597004"])
    parent: str | None
    added_rows: int | None
    deleted_rows: int | None


class CommitPage(BaseModel):
    """A page of a table's commits, newest first."""

    items: list[CommitOut]
    next_cursor: str | None = Field(description=NEXT)


class DependentOut(BaseModel):
    """A pipeline, data mart or integration that reads or writes a table, if the caller may see it."""

    id: str = Field(examples=["pip_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["pipeline"])
    name: str = Field(examples=["Refine orders"])
    mode: str = Field(examples=["read"], description="read or write")
    enabled: bool


class DependentPage(BaseModel):
    """A page of the dependents of a table."""

    items: list[DependentOut]
    next_cursor: str | None = Field(description=NEXT)


class PreviewColumn(BaseModel):
    """A column of a preview."""

    name: str = Field(examples=["amount"])
    type: str = Field(examples=["decimal(12, 2)"])


class Preview(BaseModel):
    """Some rows of a table at one snapshot."""

    snapshot: str | None = Field(examples=["3051729675574597004"], description="Null for a table without snapshots")
    columns: list[PreviewColumn]
    rows: list[list[Any]] = Field(description="Decimals and times as text, bytes in base64, maps as pairs")
    truncated: bool = Field(description="Whether the table has more rows than these")
    cut: bool = Field(description="Whether long values were truncated")


class SqlTable(BaseModel):
    """A table for SQL completion."""

    name: str = Field(examples=["raw.orders"])
    title: str | None = Field(examples=["Orders"])
    columns: list[PreviewColumn]


class SqlNames(BaseModel):
    """Names for SQL completion."""

    layers: list[str] = Field(examples=[["raw", "trusted"]], description="On the first page only")
    tables: list[SqlTable]
    functions: list[str] = Field(
        examples=[["abs", "avg"]], description="On the first page only: the functions that SQL may call"
    )
    next_cursor: str | None = Field(description=NEXT)
