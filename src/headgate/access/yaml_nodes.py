"""YAML with places: every value knows the line it stands on, so that a mistake can be pointed at."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NoReturn

import yaml

MAX_DEPTH = 12
MAX_NODES = 5_000_000
_TRUE, _FALSE = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})


class WorldError(ValueError):
    """A world that cannot be read; says in which file, on which line, at which key, and what to do."""

    def __init__(self, message: str, *, file: str, line: int | None = None, key: str = "") -> None:
        self.message, self.file, self.line, self.key = message, file, line, key
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {key + ': ' if key else ''}{message}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the document, with its place and the key that leads to it."""

    node: yaml.Node
    file: str
    key: str = ""

    @property
    def line(self) -> int:
        """The line the value starts on."""
        return int(self.node.start_mark.line) + 1

    def fail(self, message: str) -> NoReturn:
        """Refuse the document, pointing here."""
        raise WorldError(message, file=self.file, line=self.line, key=self.key)

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """The entries of a mapping, each key once."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail("expected a mapping, as in {key: value}")
        seen: set[str] = set()
        for key_node, value_node in self.node.value:
            here = Node(key_node, self.file, self.key)
            name = here.text()
            if name in seen:
                here.fail(f"the key {name!r} appears twice")
            seen.add(name)
            yield name, Node(value_node, self.file, f"{self.key}.{name}" if self.key else name)

    def elements(self) -> Iterator["Node"]:
        """The elements of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail("expected a list, as in [a, b]")
        for index, value in enumerate(self.node.value):
            yield Node(value, self.file, f"{self.key}[{index}]")

    def text(self) -> str:
        """A text, just as it is written: a member may be called 42 or no."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.fail("expected a text")
        if self.is_null or not str(self.node.value).strip():
            self.fail("expected a text, found nothing")
        return str(self.node.value).strip()

    def word(self, words: tuple[str, ...]) -> str:
        """One of these words."""
        result = self.text()
        if result not in words:
            self.fail(f"{result!r} is not one of {', '.join(words)}")
        return result

    def flag(self) -> bool:
        """True or false."""
        result = self.text().lower()
        if result not in _TRUE | _FALSE:
            self.fail(f"{result!r} is neither true nor false")
        return result in _TRUE

    def instant(self) -> datetime:
        """A time; a date means 00:00 UTC of that day, a time without a zone is UTC."""
        result = self.text()
        try:
            if len(result) == len("2026-01-01"):
                day = date.fromisoformat(result)
                return datetime(day.year, day.month, day.day, tzinfo=UTC)
            moment = datetime.fromisoformat(result)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(f"{result!r} is not a date or time; write 2026-06-01 or 2026-06-01T00:00:00Z")


def parse(text: str, file: str) -> Node:
    """The document as nodes; refuses what is not one plain YAML document."""
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise WorldError(f"not YAML: {error.problem or error.context}", file=file, line=line) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise WorldError(f"not YAML: {str(error).splitlines()[0]}", file=file) from None
    if len(documents) != 1 or documents[0] is None:
        raise WorldError("expected one YAML document with members, resources and checks", file=file, line=1)
    _check_shape(documents[0], file)
    return Node(documents[0], file)


def _check_shape(root: yaml.Node, file: str) -> None:
    """Refuse what no world needs: depth, and aliases by which a short text expands without end."""
    pending, seen = [(root, 0)], 0
    while pending:
        node, depth = pending.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_NODES:
            Node(node, file).fail("nested or repeated too deeply for a world")
        if isinstance(node, yaml.ScalarNode):
            continue
        for value in node.value:
            pending.extend((v, depth + 1) for v in (value if isinstance(value, tuple) else (value,)))
