"""People who join and sign in, as browsers do it."""

from functools import cache
from typing import Any

from starlette.testclient import TestClient

from headgate.organization.sessions import passwords
from headgate.platform.directory.models import member_table
from tests.support.company import Company

PASSWORD = "seven quiet herons fishing"
ORIGIN = {"Origin": "http://testserver"}


_hashed = cache(passwords.hashed)
"""What is stored of a password, which takes a while to work out."""


def with_password(millrace: Company, member: str, email: str, password: str = PASSWORD) -> str:
    """Give a member of the company an address and a password; their id."""
    identifier = millrace.id("member", member)
    values = {"email": email, "email_key": email.casefold(), "password": _hashed(password)}
    update = member_table.update().where(member_table.c.id == identifier).values(**values)
    millrace.database.write(lambda connection: connection.execute(update))
    return identifier


class Browser:
    """A browser with cookies of its own, on this company's pages."""

    def __init__(self, millrace: Company, **headers: str) -> None:
        self.client = TestClient(millrace.client.app, raise_server_exceptions=False, headers={**ORIGIN, **headers})

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.client.post(path, json=body, headers=headers)

    def get(self, path: str, **parameters: Any) -> Any:
        return self.client.get(path, params=parameters)

    def delete(self, path: str) -> Any:
        return self.client.delete(path)

    def sign_in(self, email: str, password: str = PASSWORD) -> Any:
        return self.post("/api/sign-in", {"email": email, "password": password})


def secret_of(link: str) -> str:
    """What stands behind the # of a link."""
    return link.rpartition("#")[2]
