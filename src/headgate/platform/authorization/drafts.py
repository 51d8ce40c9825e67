"""Drafts: facts about a resource that does not exist yet, or about its state after a save."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headgate.access import facts
from headgate.access.actions import LEVELS
from headgate.access.book import BOOK
from headgate.access.facts import Item, Stream, Subject, Thing
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.access.own import OWN_KINDS, AccessRequest
from headgate.access.world_fields import GRANT_STATE, STATE, Field
from headgate.access.world_specs import Unknown
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.lookup import Lookup, VisibleLookup
from headgate.platform.authorization.names import Viewer


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """The member who asks, and the limits of their token."""

    member: str
    narrowing: Narrowing = UNLIMITED

    def knows(self, facts: Facts, thing: Any) -> bool:
        """Whether the member may know that a resource exists."""
        subject = facts.subject(self.member)
        listed_by = BOOK.tables[thing.kind].listed_by
        return bool(BOOK.decide(subject, listed_by, thing)) and self.narrowing.reaches(listed_by, thing)

    def lookup(self, facts: Facts) -> VisibleLookup:
        """Resolves names among the resources that the member sees."""
        return VisibleLookup(facts.connection, Viewer(self.member, facts.now, self.narrowing))


class DraftTargetMissing(LookupError):
    """A draft names a resource that does not exist. It is denied like a hidden one."""


class Drafts:
    """Builds drafts from fields given by name or id."""

    def __init__(self, facts_: Facts, asker: QuestionContext | None = None) -> None:
        """Names are resolved among the resources that the asker sees; a draft that names any other is denied."""
        self.facts, self.asker = facts_, asker
        self.lookup = asker.lookup(facts_) if asker else Lookup(facts_.connection)

    # Values

    def _value(self, value: Any, spec: Field) -> Any:
        if isinstance(value, Unknown):
            raise DraftTargetMissing(value.name)
        if value is None:
            return None
        readers: dict[str, Callable[[], Any]] = {
            "ref": lambda: self._thing(spec.of, value),
            "refs": lambda: tuple(self._thing(spec.of, value) for value in value),
            "tables": lambda: tuple(dict.fromkeys(value)),
            "target": lambda: self._target(value),
            "member": lambda: self._found("member", value),
            "members": lambda: frozenset(self._found("member", value) for value in value),
            "contexts": lambda: frozenset(self._found("context", value) for value in value),
            "principal": lambda: self._principal(value),
            "roles": lambda: {self._principal(who): frozenset(roles) for who, roles in value.items()},
        }
        reader = readers.get(spec.holds)
        return reader() if reader else value

    def _found(self, kind: str, name: Any) -> str:
        result = None if isinstance(name, Unknown) else self.lookup.of(kind, name)
        if result is None:
            raise DraftTargetMissing(str(name))
        return result

    def _principal(self, name: Any) -> str:
        result = None if isinstance(name, Unknown) else self.lookup.principal(name)
        if result is None:
            raise DraftTargetMissing(str(name))
        return result

    def _thing(self, kind: str, name: Any) -> Any:
        result = self.facts.thing(self._found(kind, name))
        if self.asker is not None and not self.asker.knows(self.facts, result):
            raise DraftTargetMissing(str(name))
        return result

    def _target(self, text: str) -> Any:
        """A resource as kind:name, or the organization."""
        kind, _, name = text.partition(":")
        return self.facts.organization() if text == "organization" else self._thing(kind, name)

    def values(self, kind: str, state: dict[str, Any], fields: dict[str, Field] | None = None) -> dict[str, Any]:
        """The fields as facts hold them; DraftTargetMissing if one names a missing resource."""
        known = STATE.get(kind, {}) if fields is None else fields
        return {known[name].alias or name: self._value(value, known[name]) for name, value in state.items()}

    def item(self, ref: str) -> Item:
        """A table or volume by name; only its name if it does not exist."""
        item, layer = self.lookup.table(ref)
        result: Item = self.facts.thing(item) if item else self.facts.missing(ref, layer)
        return result

    # Drafts of new things

    def new(self, kind: str, state: dict[str, Any], subject: Subject) -> Thing | None:
        """A draft of a new resource; None for a kind that is not created this way."""
        if kind == "pipeline" and state.get("project") is not None:
            kind = "task"
        values = self.values("pipeline" if kind == "task" else kind, state)
        makers: dict[str, Callable[[], Thing]] = {
            "storage": facts.Storage,
            "destination": facts.Destination,
            "layer": facts.Layer,
            "integration": facts.Integration,
            "space": facts.Space,
            "data_mart": lambda: facts.DataMart(storage=values.get("storage"), reads=self._items(values.get("reads"))),
            "report": lambda: facts.Report(data_mart=values.get("data_mart"), destination=values.get("destination")),
            "data_mart_trigger": lambda: facts.DataMartTrigger(parent=values.get("data_mart")),
            "report_trigger": lambda: facts.ReportTrigger(parent=values.get("report")),
            "pipeline_trigger": lambda: facts.PipelineTrigger(parent=values.get("pipeline")),
            "table": lambda: facts.Table(layer=values.get("layer")),
            "volume": lambda: facts.Volume(layer=values.get("layer")),
            "saved_query": lambda: facts.SavedQuery(author=subject.id, reads=self._items(values.get("reads"))),
            "project": lambda: facts.Project(space=values.get("space")),
            "gateway": lambda: facts.Gateway(space=values.get("space")),
            "connection": lambda: facts.Connection(space=values.get("space"), gateway=values.get("gateway")),
            "access_request": lambda: AccessRequest(**values),
            "pipeline": lambda: self._flow(facts.Pipeline(), values),
            "task": lambda: self._flow(facts.Task(), values),
        }
        if kind in OWN_KINDS:
            return OWN_KINDS[kind](holder=values.get("holder"))
        maker = makers.get(kind)
        return maker() if maker else None

    def _items(self, refs: tuple[str, ...] | None) -> tuple[Item, ...]:
        return tuple(self.item(ref) for ref in refs or ())

    def grant(self, resource: Any, state: dict[str, Any]) -> facts.GrantDraft | None:
        """A new grant on a layer, table or volume."""
        values = self.values("", state, GRANT_STATE)
        if values.get("to") is None or values.get("level") is None:
            return None
        return facts.GrantDraft(
            resource=resource, to=values["to"], level=LEVELS[values["level"]], expires=values.get("expires")
        )

    # Drafts of states after a save

    def after(self, stored: Any, state: dict[str, Any]) -> tuple[Any, frozenset[str]]:
        """The state after a save, and the names of the changed fields."""
        kind = "pipeline" if stored.kind == "task" else stored.kind
        values = self.values(kind, state)
        if isinstance(stored, facts.Flow):
            return self._flow(stored, values), self._flow_changes(stored, values)
        reads = values.get("reads")
        values = {name: value for name, value in values.items() if hasattr(stored, name)}
        if reads is not None:
            values["reads"] = self._items(reads)
        changed = frozenset(name for name, value in values.items() if _differs(getattr(stored, name), value))
        extra: dict[str, Any] = {
            f"new_{name}": (values[name],)
            for name in ("storage", "data_mart", "destination", "space")
            if name in changed and hasattr(stored, f"new_{name}")
        }
        if isinstance(stored, facts.Project):
            values.pop("owner", None)
        return replace(stored, **values, **extra), changed

    def _flow(self, stored: Any, values: dict[str, Any]) -> Any:
        before = {(s.writes, s.item.name): s for s in stored.streams}
        disabled = (
            set(values["disabled"] or ())
            if "disabled" in values
            else {s.item.name for s in stored.streams if not s.enabled}
        )
        streams = []
        for writes, name in ((False, "reads"), (True, "writes")):
            old = tuple(s.item.name for s in stored.streams if s.writes == writes)
            for ref in values[name] or () if name in values else old:
                known = before.get((writes, ref))
                item = known.item if known else self.item(ref)
                streams.append(Stream(item, writes, ref not in disabled, known is None))
        names = ("output_layer", "destination", "pipeline_kind", "project")
        kept = {name: values[name] for name in names if name in values and hasattr(stored, name)}
        if "connections" in values:
            kept["connections"] = values["connections"] or ()
        return replace(stored, streams=tuple(streams), **kept)

    @staticmethod
    def _flow_changes(stored: Any, values: dict[str, Any]) -> frozenset[str]:
        """The changed fields of a pipeline that matter here: those that belong to another action or to none."""
        acts_for = stored.acts_for.id if stored.acts_for else None
        now = {
            "project": getattr(stored, "project", None),
            "owner": getattr(stored, "owner", None),
            "acts_for": acts_for,
        }
        return frozenset(name for name in now if name in values and _differs(now[name], values[name]))


def _differs(old: Any, new: Any) -> bool:
    if isinstance(old, Thing) or isinstance(new, Thing):
        return getattr(old, "id", None) != getattr(new, "id", None)
    if isinstance(old, Subject):
        return bool(old.id != new)
    return bool(old != new)
