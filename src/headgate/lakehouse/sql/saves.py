"""What a probe saves once its reads are known. Saved queries and pipelines register a function each."""

from collections.abc import Callable, Sequence

from sqlalchemy.engine import RowMapping

from headgate.platform.audit.events import Event
from headgate.platform.unit_of_work.call import Call

Save = Callable[[Call, RowMapping, list[str], str | None], str]
"""Saves the subject of a probe: takes its row, the loaded tables and the missing table; returns the id."""


class NotSaved(Exception):
    """Why a query or pipeline was not saved, and what to do; `denials` are the refusals to audit."""

    def __init__(self, why: str, denials: Sequence[Event] = ()) -> None:
        super().__init__(why)
        self.denials = denials
