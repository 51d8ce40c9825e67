"""The consecutive transactions of one unit of work, with file access in between."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeVar

from headgate.kit.clock import now as clock
from headgate.platform.audit.events import Event, record
from headgate.platform.unit_of_work.call import Call, Caller, Recorded
from headgate.platform.unit_of_work.services import SEEN_EVERY, CredentialUse, Services
from headgate.settings.settings import Settings

T = TypeVar("T")
Identify = Callable[[Any, datetime], Caller]
"""Identifies the caller, given a connection and the time of its transaction."""
Admit = Callable[[Call], AbstractContextManager[None]]
"""Admits or refuses a call, and records refusals within it."""


class Stages:
    """Identifies and admits the caller in every transaction that it opens."""

    def __init__(
        self,
        services: Services,
        identify: Identify,
        admit: Admit,
        request_id: str | None = None,
        authorization: str = "",
    ) -> None:
        """`authorization` is the credential that identified the caller."""
        self.services, self.authorization = services, authorization
        self._identify, self._admit, self._request_id = identify, admit, request_id
        self.recorded: list[Recorded] = []
        self.who, self.now = Caller(""), clock()

    @property
    def settings(self) -> Settings:
        """The settings of this installation."""
        return self.services.settings

    @property
    def denials(self) -> list[Event]:
        """The recorded refusals."""
        return [event for recorded in self.recorded for event in recorded.denials]

    def offline(self, work: Callable[[Call], T]) -> T:
        """Run work without the database."""
        return self._work(None, work)

    def peek(self, work: Callable[[Call], T]) -> T:
        """Run work whose statements need no common snapshot."""
        with self.services.database.peek() as connection:
            return self._work(connection, work)

    def read(self, work: Callable[[Call], T]) -> T:
        """Run work on one snapshot."""
        with self.services.database.read() as connection:
            return self._work(connection, work)

    def write(self, work: Callable[[Call], T], *, in_turn: bool = False) -> T:
        """Run work in one transaction and commit it; on a conflict with another write, it is retried as a whole.

        For `in_turn` see Database.write.
        """
        recorded_before = len(self.recorded)

        def attempt(connection: Any) -> T:
            del self.recorded[recorded_before:]
            return self._work(connection, work)

        return self.services.database.write(attempt, in_turn=in_turn)

    def _work(self, connection: Any, work: Callable[[Call], T]) -> T:
        self.now = clock()
        self.who = self._identify(connection, self.now)
        call = Call(connection, self.now, self.who, self.services, self._request_id)
        self.recorded.append(call.recorded)
        with self._admit(call):
            return work(call)

    def record_denials(self) -> None:
        """Write the refusals in a separate transaction, because the refused one was rolled back."""
        if denials := self.denials:
            self.services.database.write(lambda connection: record(connection, denials))

    def note(self) -> None:
        """Queue deferred records: reads, and the use of the credential."""
        for recorded in self.recorded:
            for event in recorded.reads:
                self.services.batches.put(event)
        who = self.who
        if self.recorded and who.member and not who.operator and (who.seen is None or self.now - who.seen > SEEN_EVERY):
            self.services.uses.put(CredentialUse(who.member, who.token, who.session, self.now))

    def finish(self) -> None:
        """Write the refusals and queue the other records."""
        self.record_denials()
        self.note()
