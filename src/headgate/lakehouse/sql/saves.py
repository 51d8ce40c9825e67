"""What a probe saves once its reads are known. The nouns that are saved register how."""

from collections.abc import Callable, Sequence

from sqlalchemy.engine import RowMapping

from headgate.platform.audit.events import Event
from headgate.platform.unit_of_work.call import Call

Save = Callable[[Call, RowMapping, list[str], str | None], str]
"""Writes what a probe was for: takes its row, the tables that it has loaded, and what it did not find; gives the id."""


class NotSaved(Exception):
    """Why a query or pipeline was not saved, and what to do; `denials` are the refusals to be recorded."""

    def __init__(self, why: str, denials: Sequence[Event] = ()) -> None:
        super().__init__(why)
        self.denials = denials
