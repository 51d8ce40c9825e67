"""Narrowed tokens: what a token may at most do, whatever its creator can."""

from dataclasses import dataclass
from datetime import datetime

from headgate.access.actions import CREDENTIAL_ACTIONS, READ_ONLY
from headgate.access.facts import Item, Thing


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The limits of a token. `only` are ids of layers, tables and volumes; `layers` those of what it lists.

    With `writes`, it reads what it lists, and does nothing else but to these.
    """

    read_only: bool = False
    only: frozenset[str] | None = None
    layers: frozenset[str] = frozenset()
    expires: datetime | None = None
    writes: frozenset[str] | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether there is any limit at all."""
        return self.read_only or self.only is not None or self.expires is not None

    def permits_action(self, action: str, now: datetime) -> bool:
        """Whether the action is within the limits, of whatever it is asked."""
        if self.expires is not None and self.expires <= now:
            return False
        if self.read_only and action not in READ_ONLY:
            return False
        return not (self.is_narrowed and action in CREDENTIAL_ACTIONS)

    def reaches(self, action: str, thing: Thing) -> bool:
        """Whether the resource is within the limits, for this action."""
        layer = thing.layer.id if isinstance(thing, Item) and thing.layer else None
        return self.reaches_id(action, thing.kind, thing.id, layer)

    def reaches_id(self, action: str, kind: str, identifier: str | None, layer: str | None) -> bool:
        """The same, of a resource by its id and, for a table or volume, its layer's."""
        if self.only is None:
            return True
        if self.writes is not None and action not in READ_ONLY:
            return identifier in self.writes
        if kind == "layer":
            return identifier in self.only or (action == "see" and identifier in self.layers)
        if kind in {"table", "volume", "ref"}:
            return identifier in self.only or layer in self.only
        return False

    def within(
        self, actions: tuple[str, ...], now: datetime, kind: str, identifier: str, layer: str | None
    ) -> tuple[str, ...]:
        """Of these actions, those within the limits."""
        if not self.is_narrowed:
            return actions
        return tuple(
            action
            for action in actions
            if self.permits_action(action, now) and self.reaches_id(action, kind, identifier, layer)
        )

    def condition(self, action: str, kind: str) -> str:
        """SQL over `r` for what `reaches` says; binds `:only` and the others through {only}, {layers} and {writes}."""
        if self.only is None:
            return "TRUE"
        if self.writes is not None and action not in READ_ONLY:
            return "{writes:r.id}" if kind in {"layer", "table", "volume"} else "FALSE"
        if kind == "layer":
            return "({only:r.id} OR {layers:r.id})" if action == "see" else "{only:r.id}"
        if kind in {"table", "volume"}:
            return "({only:r.id} OR {only:r.layer_id})"
        return "FALSE"


UNLIMITED = Narrowing()
