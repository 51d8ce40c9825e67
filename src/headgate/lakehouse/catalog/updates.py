"""Applies the updates of a commit to a table; refuses anything that points outside of it.

PyIceberg provides the models and applies the updates. This module handles the rest: ids that mean "the last one added",
parts that exist already, and every field that could lead a table outside of its root.
"""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headgate.lakehouse.catalog import properties
from headgate.lakehouse.catalog.errors import CommitFailed, Malformed, NotValid
from headgate.lakehouse.catalog.files import Root
from headgate.lakehouse.catalog.manifests import check_file, check_path
from headgate.lakehouse.catalog.table_schemas import (
    FIRST_PARTITION_FIELD,
    FORMAT,
    MAX_ID,
    check_schema,
    check_spec,
    check_transforms,
    short,
)

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

MAX_REFS = 1_000
CLOCK_SLACK_MS = 10 * 60 * 1000
MAIN = "main"
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_LAST = -1
_PART_FIELDS = {"schema": ("schema_", "schema_id"), "order": ("sort_order", "order_id")}
"""The field of an update that holds the part, and the field of the part that holds its id."""


class Editor:
    """Validates the updates of one commit in order and resolves implicit ids."""

    def __init__(self, base: Any, root: Root, now: datetime, *, ignores_location: bool = False) -> None:
        self.base, self.root, self.ignores_location = base, root, ignores_location
        self.now_ms = int(now.timestamp() * 1000)
        self.schemas = {schema.schema_id: schema for schema in base.schemas}
        self.specs = {spec.spec_id: spec for spec in base.partition_specs}
        self.orders = {order.order_id: order for order in base.sort_orders}
        self.properties = set(base.properties)
        self.refs = set(base.refs)
        self.main = base.current_snapshot_id
        self.snapshots = {snapshot.snapshot_id for snapshot in base.snapshots}
        self.sequence = base.last_sequence_number
        self.last: dict[str, int | None] = {"schema": None, "spec": None, "order": None}
        self.ids: dict[str, dict[int, int]] = {"schema": {}, "spec": {}, "order": {}}
        """For the parts that this commit adds: the requested ids and the assigned ids."""
        self.added: list[Any] = []
        self.asked_location: str | None = None

    def checked(self, updates: tuple[Any, ...]) -> list[Any]:
        """The updates to apply, without those that change nothing."""
        result = []
        for update in updates:
            check: Callable[[Any], Any] | None = getattr(self, "_" + update.action.replace("-", "_"), None)
            if check is None:
                raise NotValid(f"The update {update.action!r} is not supported")
            kept = check(update)
            if kept is not None:
                result.append(kept)
        return result

    # The table itself

    def _assign_uuid(self, update: Any) -> None:
        if UUID(str(update.uuid)) != UUID(str(self.base.table_uuid)):
            raise NotValid("The uuid of a table cannot change")

    def _upgrade_format_version(self, update: Any) -> None:
        if update.format_version != FORMAT:
            raise NotValid(f"Format version {update.format_version} is not supported; tables have version {FORMAT}")

    def _set_location(self, update: Any) -> None:
        if update.location.rstrip("/") != self.base.location and not self.ignores_location:
            raise NotValid("The location of a table cannot change; remove the update")
        self.asked_location = update.location

    def _set_properties(self, update: Any) -> Any:
        kept = properties.check(dict(update.updates), creating=not self.base.schemas)
        self.properties |= set(kept)
        if len(self.properties) > properties.MAX_PROPERTIES:
            raise NotValid(f"A table has at most {properties.MAX_PROPERTIES} properties")
        return update.model_copy(update={"updates": kept}) if kept else None

    def _remove_properties(self, update: Any) -> Any:
        gone = [name for name in dict.fromkeys(update.removals) if name in self.properties]
        self.properties -= set(gone)
        return update.model_copy(update={"removals": gone}) if gone else None

    # Schemas, partition specs, sort orders

    def _add_schema(self, update: Any) -> Any:
        schema = update.schema_
        check_schema(schema)
        same = next((entry.schema_id for entry in self.schemas.values() if entry == schema), None)
        return self._part("schema", self.schemas, schema.schema_id, schema, same, update)

    def _add_spec(self, update: Any) -> Any:
        spec = update.spec
        check_spec(spec)
        same = next((entry.spec_id for entry in self.specs.values() if entry.fields == spec.fields), None)
        return self._part("spec", self.specs, spec.spec_id, spec, same, update)

    def _add_sort_order(self, update: Any) -> Any:
        order = update.sort_order
        if not 0 <= order.order_id <= MAX_ID or (order.order_id == 0) != (not order.fields):
            raise NotValid("Sort order 0 must have no fields; other sort orders have ids from 1")
        check_transforms("sort order", order.fields)
        same = next((entry.order_id for entry in self.orders.values() if entry.fields == order.fields), None)
        return self._part("order", self.orders, order.order_id, order, same, update)

    def _part(self, what: str, known: dict[int, Any], number: int, part: Any, same: int | None, update: Any) -> Any:
        """Add a part once. If another commit took its id, it gets the next one, as in Iceberg's own catalogs.

        A partition spec keeps its id, because the client's manifests refer to it.
        """
        taken = number in known
        if same is None and taken and what == "spec":
            raise CommitFailed(f"Another commit has used the partition spec id {number}; reload the table")
        final = max(known) + 1 if taken else number
        chosen = final if same is None else same
        self.last[what] = self.ids[what][number] = chosen
        if same is not None:
            return None
        if chosen > MAX_ID:
            raise NotValid(f"The table has used all {what} ids up to {MAX_ID}")
        if chosen != number:
            field, name = _PART_FIELDS[what]
            part = part.model_copy(update={name: chosen})
            update = update.model_copy(update={field: part})
        known[chosen] = part
        return update

    def _chosen(self, what: str, known: dict[int, Any], number: int) -> int:
        chosen = self.last[what] if number == _LAST else self.ids[what].get(number, number)
        if chosen is None or chosen not in known:
            raise NotValid(f"There is no {what} {number}" if number != _LAST else f"No {what} was added")
        return chosen

    def _set_current_schema(self, update: Any) -> Any:
        return update.model_copy(update={"schema_id": self._chosen("schema", self.schemas, update.schema_id)})

    def _set_default_spec(self, update: Any) -> Any:
        return update.model_copy(update={"spec_id": self._chosen("spec", self.specs, update.spec_id)})

    def _set_default_sort_order(self, update: Any) -> Any:
        return update.model_copy(update={"sort_order_id": self._chosen("order", self.orders, update.sort_order_id)})

    def _remove_schemas(self, update: Any) -> Any:
        return update

    def _remove_partition_specs(self, update: Any) -> Any:
        return update

    # Snapshots and references

    def _add_snapshot(self, update: Any) -> Any:
        snapshot = update.snapshot
        self._check_list(snapshot.manifest_list)
        if snapshot.first_row_id is not None or snapshot.added_rows is not None:
            raise NotValid("Row lineage requires format version 3, which is not supported")
        if snapshot.snapshot_id in self.snapshots:
            raise NotValid(f"The snapshot {snapshot.snapshot_id} already exists")
        if snapshot.schema_id is not None:
            schema = self._chosen("schema", self.schemas, snapshot.schema_id)
            snapshot = snapshot.model_copy(update={"schema_id": schema})
        parent = snapshot.parent_snapshot_id
        if parent is not None and parent not in self.snapshots:
            raise CommitFailed(f"The parent snapshot {parent} no longer exists; reload the table")
        self._check_order(snapshot)
        self.snapshots.add(snapshot.snapshot_id)
        self.added.append(snapshot)
        return update.model_copy(update={"snapshot": snapshot})

    def _check_list(self, manifest_list: str) -> None:
        try:
            check_path(self.root, manifest_list, "The manifest list")
        except NotValid as error:
            if self.asked_location is None:
                raise
            # The client of a replace writes its files to the location it requested.
            raise NotValid(f"{error.detail}. Replacing a table cannot change its location: omit LOCATION") from None

    def _check_order(self, snapshot: Any) -> None:
        """Check the sequence number. A snapshot without a parent may have an old one: a concurrent CREATE OR REPLACE
        does not continue the earlier history.
        """
        number = snapshot.sequence_number or 0
        if number <= self.sequence and snapshot.parent_snapshot_id is not None:
            raise CommitFailed(
                f"Cannot add snapshot with sequence number {number} older than last sequence number {self.sequence}"
            )
        if not 0 < number <= self.sequence + 1:
            raise NotValid(f"The next sequence number must be {self.sequence + 1}, not {number}")
        self.sequence = max(self.sequence, number)
        if snapshot.timestamp_ms > self.now_ms + CLOCK_SLACK_MS:
            raise NotValid("Invalid snapshot timestamp: it is in the future; check this machine's clock")
        if self.base.snapshots and snapshot.timestamp_ms < self.base.last_updated_ms - CLOCK_SLACK_MS:
            raise NotValid("Invalid snapshot timestamp: it is before the table's last change; check the clock")

    def _set_snapshot_ref(self, update: Any) -> Any:
        if not _REF.fullmatch(update.ref_name) or ".." in update.ref_name:
            raise NotValid(
                f"{update.ref_name[:130]!r} is not a valid name of a branch or tag; use letters, digits, _ - and ."
            )
        if update.ref_name == MAIN and update.type != "branch":
            raise NotValid("main must be a branch")
        if update.snapshot_id not in self.snapshots:
            raise NotValid(f"Cannot set {update.ref_name} to unknown snapshot: {update.snapshot_id}")
        if (update.min_snapshots_to_keep or 0) > MAX_ID:
            raise NotValid(f"min-snapshots-to-keep must be at most {MAX_ID}")
        self.refs.add(update.ref_name)
        if len(self.refs) > MAX_REFS:
            raise NotValid(f"A table has at most {MAX_REFS} branches and tags")
        if update.ref_name == MAIN:
            self.main = update.snapshot_id
        return update

    def _remove_snapshot_ref(self, update: Any) -> Any:
        if update.ref_name == MAIN:
            self.main = None
        self.refs.discard(update.ref_name)
        return update

    def _remove_snapshots(self, update: Any) -> Any:
        if self.main in update.snapshot_ids:
            raise NotValid("The current snapshot cannot be removed")
        gone = [snapshot_id for snapshot_id in dict.fromkeys(update.snapshot_ids) if snapshot_id in self.snapshots]
        self.snapshots -= set(gone)
        return update.model_copy(update={"snapshot_ids": gone}) if gone else None

    # Statistics

    def _set_statistics(self, update: Any) -> Any:
        self._check_statistics(update.statistics)
        if update.statistics.key_metadata is not None:
            raise NotValid("Encrypted statistics are not supported")
        return update

    def _set_partition_statistics(self, update: Any) -> Any:
        self._check_statistics(update.partition_statistics)
        return update

    def _check_statistics(self, statistics: Any) -> None:
        check_file(self.root, statistics.statistics_path, "The statistics file")
        if statistics.snapshot_id not in self.snapshots:
            raise NotValid(f"There is no snapshot {statistics.snapshot_id} for these statistics")

    def _remove_statistics(self, update: Any) -> Any:
        there = any(statistic.snapshot_id == update.snapshot_id for statistic in self.base.statistics)
        return update if there else None

    def _remove_partition_statistics(self, update: Any) -> Any:
        there = any(statistic.snapshot_id == update.snapshot_id for statistic in self.base.partition_statistics)
        return update if there else None


EXISTS = "Requirement failed: table already exists"
_CHANGED = {
    "assert-last-assigned-field-id": ("last assigned field id", "last_assigned_field_id", "last_column_id"),
    "assert-current-schema-id": ("current schema", "current_schema_id", "current_schema_id"),
    "assert-last-assigned-partition-id": (
        "last assigned partition id",
        "last_assigned_partition_id",
        "last_partition_id",
    ),
    "assert-default-spec-id": ("default partition spec", "default_spec_id", "default_spec_id"),
    "assert-default-sort-order-id": ("default sort order", "default_sort_order_id", "default_sort_order_id"),
}
"""For each requirement: what Iceberg calls the changed part, the requirement's field, and the metadata's field."""


def require(requirements: tuple[Any, ...], base: "TableMetadata | None") -> None:
    """Refuse a commit whose requirements do not hold, with Iceberg's messages, on which clients match."""
    from pyiceberg.exceptions import CommitFailedException

    for requirement in requirements:
        try:
            requirement.validate(base)
        except CommitFailedException as error:
            raise CommitFailed(_failed(requirement, base) or str(error)) from None


def _failed(requirement: Any, base: "TableMetadata | None") -> str | None:
    """Why a requirement does not hold; None if the library's own message is Iceberg's."""
    if base is None:
        return None
    kind = requirement.type
    if kind == "assert-create":
        return EXISTS
    if kind == "assert-table-uuid":
        return f"Requirement failed: UUID does not match: expected {requirement.uuid} != {base.table_uuid}"
    if kind == "assert-ref-snapshot-id":
        return _moved(requirement, base)
    if kind in _CHANGED:
        what, field, now = _CHANGED[kind]
        return f"Requirement failed: {what} changed: expected id {getattr(requirement, field)} != {getattr(base, now)}"
    return None


def _moved(requirement: Any, base: "TableMetadata") -> str | None:
    name, wanted, ref = requirement.ref, requirement.snapshot_id, base.refs.get(requirement.ref)
    if ref is None:
        return f"Requirement failed: branch or tag {name} is missing, expected {wanted}"
    kind = ref.snapshot_ref_type.value
    if wanted is None:
        return f"Requirement failed: {kind} {name} was created concurrently"
    return f"Requirement failed: {kind} {name} has changed: expected id {wanted} != {ref.snapshot_id}"


def empty(location: str, uuid: str) -> Any:
    """Empty metadata of a new table."""
    from pyiceberg.table.metadata import TableMetadataV2

    return TableMetadataV2.model_construct(
        location=location,
        table_uuid=UUID(uuid),
        last_updated_ms=0,
        last_column_id=0,
        schemas=[],
        current_schema_id=_LAST,
        partition_specs=[],
        default_spec_id=_LAST,
        last_partition_id=FIRST_PARTITION_FIELD - 1,
        properties={},
        current_snapshot_id=None,
        snapshots=[],
        snapshot_log=[],
        metadata_log=[],
        sort_orders=[],
        default_sort_order_id=_LAST,
        refs={},
        statistics=[],
        partition_statistics=[],
        format_version=2,
        last_sequence_number=0,
    )


def apply(base: Any, updates: list[Any], previous: str | None) -> Any:
    """The table after these updates; raises NotValid."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table.update import update_table_metadata

    try:
        after = update_table_metadata(base, tuple(updates), enforce_validation=True, metadata_location=previous)
        # A snapshot without a parent may have an old sequence number; the table's number never decreases.
        numbers = (base.last_sequence_number, *(snapshot.sequence_number or 0 for snapshot in after.snapshots))
        return after.model_copy(update={"last_sequence_number": max(numbers)})
    except StopIteration:
        raise Malformed("A new table requires a current schema, partition spec and sort order") from None
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError, ValidationError) as error:
        raise NotValid(short(error)) from None


def without_oldest(metadata: Any, keep: int) -> Any:
    """The table without its oldest snapshots beyond `keep`; those referenced by a branch or tag stay."""
    named = {ref.snapshot_id for ref in metadata.refs.values()} | {metadata.current_snapshot_id}
    free = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in named]
    surplus = len(metadata.snapshots) - keep
    if surplus <= 0 or not free:
        return metadata
    ordered = sorted(free, key=lambda value: (value.timestamp_ms, value.sequence_number))
    return without(metadata, metadata, [value.snapshot_id for value in ordered[:surplus]])


def without(metadata: Any, before: Any, snapshots: Iterable[int]) -> Any:
    """The table without these snapshots, their statistics, and the snapshot log up to them."""
    gone, log = set(snapshots), before.snapshot_log
    last = max((index for index, value in enumerate(log) if value.snapshot_id in gone), default=-1)
    return metadata.model_copy(
        update={
            "snapshots": [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in gone],
            "snapshot_log": log[last + 1 :],
            "statistics": [statistic for statistic in metadata.statistics if statistic.snapshot_id not in gone],
            "partition_statistics": [
                statistic for statistic in metadata.partition_statistics if statistic.snapshot_id not in gone
            ],
        }
    )


def without_steps(metadata: Any, taken: int | None) -> Any:
    """The table as published by a run: its snapshot log contains the run's base and the result.

    The states between were visible only to the run and are omitted.
    """
    log = metadata.snapshot_log
    places = [index for index, value in enumerate(log) if value.snapshot_id == taken]
    if taken is not None and not places:
        return metadata
    since = places[-1] + 1 if places else 0
    return metadata.model_copy(update={"snapshot_log": [*log[:since], *log[since:][-1:]]})
