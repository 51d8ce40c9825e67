"""Who knows which credential, and what a coalition is entitled to, whatever the product thinks of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.errors import LinkSpent
from headgate.lakehouse.sql.models import statement_table
from headgate.organization.sessions import service as sessions
from headgate.organization.tokens import service as tokens
from headgate.platform.directory.models import member_table
from headgate.settings.sign_in import SignInSettings
from tests.escalation.organization import Rights

RANKS = {"business": 1, "technical": 1, "admin": 2, "owner": 3}
ADMIN, OWNER = 2, 3


@dataclass(frozen=True, slots=True)
class Secret:
    """Something by which whoever knows it acts for an account, at once or after one step more."""

    kind: str
    """session, token, sign_in, password_link, password, statement; or invitation, for which there is no account yet."""

    account: str
    value: str
    stored: str | None = None
    """Of a password: the hash that it is kept as."""


@dataclass(slots=True)
class Knowledge:
    """The secrets that a coalition knows, the newest last."""

    database: Database
    settings: SignInSettings
    ids: dict[str, str]
    secrets: list[Secret] = field(default_factory=list)

    def usable(self, account: str | None = None, *kinds: str) -> Iterator[Secret]:
        """Those that would work now, the newest first; of one account, if it is named, and of these kinds."""
        with self.database.read() as connection:
            for secret in reversed(self.secrets):
                is_asked = account in {None, secret.account} and (not kinds or secret.kind in kinds)
                if is_asked and self._works(connection, secret):
                    yield secret

    def newest(self, account: str | None, *kinds: str) -> Secret | None:
        """The newest that would work."""
        return next(self.usable(account, *kinds), None)

    def _works(self, connection: Connection, secret: Secret) -> bool:
        member = self.ids.get(secret.account, "")
        match secret.kind:
            case "session":
                return sessions.identify(connection, secret.value, now(), self.settings) is not None
            case "token":
                return tokens.identify(connection, secret.value, now()) is not None
            case "sign_in" | "password_link":
                purpose = "sign_in" if secret.kind == "sign_in" else "password"
                try:
                    return sessions.member_of_link(connection, secret.value, purpose, now()) == member
                except LinkSpent:
                    return False
            case "password":
                row = member_table.c
                good = (row.id == member, row.password == secret.stored, row.password_ended_at.is_(None))
                return connection.execute(select(row.id).where(*good, row.removed_at.is_(None))).first() is not None
            case "statement":
                row = statement_table.c
                waits = (row.id == secret.value, row.state.in_(("queued", "running")))
                return connection.execute(select(row.id).where(*waits)).first() is not None
        return secret.kind == "invitation"


@dataclass(slots=True)
class Entitled:
    """What the members of a coalition held, could take, or were given, so far.

    An owner could take anything, and an admin anything but ownership: they make links for all others (section 3). They
    hold that for good, as somebody who has read a book has read it. Everyone else holds single rights.
    """

    rank: int = 0
    rights: dict[str, set[str]] = field(default_factory=dict)

    def add(self, rights: Rights, members: set[str]) -> None:
        """What these members have is theirs from now on."""
        for (member, resource), actions in rights.items():
            if member in members:
                self.rights.setdefault(resource, set()).update(actions)

    def lacks(self, rights: Rights, member: str) -> list[str]:
        """What a member has and the coalition was never entitled to."""
        return [
            f"{action} on {resource}"
            for (holder, resource), actions in sorted(rights.items())
            if holder == member
            for action in sorted(actions - self.rights.get(resource, set()))
        ]
