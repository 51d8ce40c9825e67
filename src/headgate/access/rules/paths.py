"""What a rule table is made of."""

from dataclasses import dataclass

from headgate.access.conditions import Condition


@dataclass(frozen=True, slots=True)
class Remedy:
    """How someone without a path could get it: by whom (who has `action` on `relation`, or the resource) and how."""

    how: str
    action: str
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """A named way to have actions: whoever meets the condition has them."""

    name: str
    condition: Condition
    grants: tuple[str, ...]
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule table of one kind. `listed_by` is the action that puts a resource on a member's list."""

    kind: str
    title: str
    listed_by: str
    paths: tuple[Path, ...]
    internal: frozenset[str] = frozenset()
    """Names that tables refer to each other by, and that nobody is ever asked about or granted."""

    @property
    def actions(self) -> tuple[str, ...]:
        """Every action of the kind, in the order in which the table first names them."""
        values = dict.fromkeys(action for path in self.paths for action in path.grants)
        return tuple(action for action in values if action not in self.internal)
