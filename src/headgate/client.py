"""A Python client: `from headgate.client import Headgate`. Thin, typed by the schemas that the server itself uses.

with Headgate("https://data.example.com", token="hgt_…") as headgate:
    for mart in headgate.resources("data_mart"):
        print(mart.name, mart.allowed)
"""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2 as httpx
from pydantic import TypeAdapter

from headgate.governance.schemas import Can, Changed, Explained, Me, MemberName, WhatIfAnswer, WhatPage, WhoPage
from headgate.members.schemas import InvitationOut, MemberOut, MemberPage
from headgate.resources.schemas import Resource, ResourcePage
from headgate.tokens.schemas import TokenMade

T = TypeVar("T")


class HeadgateError(Exception):
    """What the server refused: `status`, a `code` for programs, and a sentence that says what to do."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status, self.code, self.body = status, str(body.get("code", "")), body
        super().__init__(str(body.get("detail") or f"the server answered {status}"))


class Headgate:
    """A server, used as the member whose token it is."""

    def __init__(self, server: str, token: str, *, timeout: float = 60) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=server.rstrip("/"), headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """Any request of the API; its answer as plain values, or HeadgateError."""
        given = {name: value for name, value in parameters.items() if value is not None}
        more = {} if body is None else {"json": body}
        response = self._http.request(method, path, params=given, **more)
        is_json = "json" in response.headers.get("content-type", "")
        if not response.is_success:
            raise HeadgateError(response.status_code, response.json() if is_json else {})
        return response.json() if is_json else response.text

    def _typed(self, answer: type[T], /, method: str, path: str, body: Any = None, **parameters: Any) -> T:
        return TypeAdapter(answer).validate_python(self.request(method, path, body, **parameters))

    def _pages(self, answer: type[T], method: str, path: str, **asked: Any) -> Iterator[T]:
        """Every page of a list; what is asked goes into the query of a GET and the body of a POST."""
        cursor: str | None = None
        while True:
            question = {**asked, "limit": 200, "cursor": cursor}
            sent = {"body": question} if method == "POST" else question
            page = self._typed(answer, method, path, **sent)
            yield page
            cursor = page.next_cursor  # type: ignore[attr-defined]
            if cursor is None:
                return

    def me(self) -> Me:
        """Who the token's member is, and what they can do in the organization."""
        return self._typed(Me, "GET", "/api/access/me")

    def resources(
        self, kind: str, *, action: str | None = None, sort: str = "name", prefix: str = ""
    ) -> Iterator[Resource]:
        """All resources of a kind that the member may see, or on which they have an action; page by page."""
        asked = {"kind": kind, "action": action, "sort": sort, "prefix": prefix}
        for page in self._pages(ResourcePage, "GET", "/api/resources", **asked):
            yield from page.items

    def resource(self, identifier: str) -> Resource:
        """One resource by its id."""
        return self._typed(Resource, "GET", f"/api/resources/{identifier}")

    def can(self, action: str, resource: str, *, member: str | None = None) -> bool:
        """Whether the member, or another, may do this."""
        return self.explain(action, resource, member=member).allowed

    def explain(self, action: str, resource: str, *, member: str | None = None) -> Explained:
        """Whether, and why; if not, what is missing and who could grant it."""
        body = {"action": action, "resource": resource, "member": member}
        return self._typed(Explained, "POST", "/api/access/explain", body)

    def who_can(self, action: str, resource: str) -> Iterator[MemberName]:
        """All members who have an action on a resource."""
        for page in self._pages(WhoPage, "POST", "/api/access/who-can", action=action, resource=resource):
            yield from page.items

    def what_can(self, kind: str, *, member: str | None = None) -> Iterator[Can]:
        """All resources of a kind that a member sees, with what they can do."""
        for page in self._pages(WhatPage, "POST", "/api/access/what-can", kind=kind, member=member):
            yield from page.items

    def what_if(self, change: str, **values: Any) -> WhatIfAnswer:
        """Who would gain and lose by a change that is not made."""
        return self._typed(WhatIfAnswer, "POST", "/api/access/what-if", {"change": {"change": change, **values}})

    def change(self, change: str, **values: Any) -> Changed:
        """Make a change of access, such as `change("share", resource="data_mart:Sales", for_use=True)`."""
        return self._typed(Changed, "POST", "/api/access/changes", {"change": change, **values})

    def members(self, *, sort: str = "name") -> Iterator[MemberOut]:
        """All members, as far as the token's member may see them."""
        for page in self._pages(MemberPage, "GET", "/api/members", sort=sort):
            yield from page.items

    def invite(self, email: str, role: str, **more: Any) -> InvitationOut:
        """Invite someone; the answer holds the link if no mail is sent."""
        return self._typed(InvitationOut, "POST", "/api/invitations", {"email": email, "role": role, **more})

    def make_token(self, name: str, **limits: Any) -> TokenMade:
        """Make a token of one's own; its secret is in the answer."""
        return self._typed(TokenMade, "POST", "/api/tokens", {"name": name, **limits})
