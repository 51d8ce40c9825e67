"""A Python client: `from headgate.client import Headgate`. Thin, typed by the schemas that the server itself uses.

with Headgate("https://data.example.com", token="hgt_…") as headgate:
    for mart in headgate.resources("data_mart"):
        print(mart.name, mart.allowed)
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2 as httpx
from pydantic import TypeAdapter

from headgate.client.file_transfer import Progress, Transfer
from headgate.client.statements import STATEMENTS, run
from headgate.lakehouse.files.schemas import FileOut, FilePage
from headgate.organization.access.schemas import (
    Can,
    Changed,
    Explained,
    Me,
    MemberName,
    WhatIfAnswer,
    WhatPage,
    WhoPage,
)
from headgate.organization.members.schemas import InvitationOut, MemberOut, MemberPage
from headgate.organization.tokens.schemas import TokenMade
from headgate.platform.authorization.schemas import Resource, ResourcePage

T = TypeVar("T")


def _quietly(done: int, total: int) -> None:
    """Tell nobody how far a transfer is."""


class HeadgateError(Exception):
    """What the server refused: `status`, a `code` for programs, and a sentence that says what to do."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status, self.code, self.body = status, str(body.get("code", "")), body
        super().__init__(str(body.get("detail") or f"the server answered {status}"))


class Rows:
    """The rows of a statement, fetched page by page; `statement` says the rest of it."""

    def __init__(self, headgate: "Headgate", statement: dict[str, Any]) -> None:
        self._headgate, self.statement = headgate, statement

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [one["name"] for one in self.statement["columns"] or ()]

    @property
    def truncated(self) -> bool:
        """Whether rows were left out because of a limit."""
        return bool(self.statement["truncated"])

    def __len__(self) -> int:
        return int(self.statement["rows"] or 0)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Each row, with values as JSON holds them: decimals and times are texts."""
        place = f"{STATEMENTS}/{self.statement['id']}/pages"
        for number in range(self.statement["pages"] or 0):
            data = self.statement["data"] if number == 0 else self._headgate.request("GET", f"{place}/{number}")["data"]
            yield from map(tuple, data or ())

    def arrow(self) -> Any:
        """All rows as one pyarrow.Table, with their exact types."""
        import pyarrow as pa

        pages = [self._headgate.page(self.statement["id"], number) for number in range(self.statement["pages"] or 0)]
        return pa.concat_tables(pa.ipc.open_stream(page).read_all() for page in pages)


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
        return self._answer(self._http.request(method, path, params=given, **more))

    @staticmethod
    def _answer(response: httpx.Response) -> Any:
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

    def sql(self, sql: str, *, max_rows: int | None = None, seconds: float | None = None) -> "Rows":
        """Run SQL as the token's member and wait for its end. Whatever breaks that off cancels the statement.

        for id, amount in headgate.sql("SELECT id, amount FROM service.revenue"): …
        table = headgate.sql("SELECT * FROM service.revenue").arrow()
        """
        return Rows(self, run(self.request, sql, max_rows, seconds=seconds))

    def page(self, statement: str, number: int) -> bytes:
        """A page of a statement's rows, as an Arrow stream."""
        accept = {"Accept": "application/vnd.apache.arrow.stream"}
        response = self._http.get(f"{STATEMENTS}/{statement}/pages/{number}", headers=accept)
        if not response.is_success:
            raise HeadgateError(response.status_code, response.json())
        return response.content

    def make_token(self, name: str, **limits: Any) -> TokenMade:
        """Make a token of one's own; its secret is in the answer."""
        return self._typed(TokenMade, "POST", "/api/tokens", {"name": name, **limits})

    @cached_property
    def _transfer(self) -> Transfer:
        return Transfer(self._http, self._answer)

    def files(self, volume: str, *, prefix: str = "") -> Iterator[FileOut]:
        """All files of a volume (`raw.invoices`, or an id) whose paths begin like this."""
        at = f"/api/volumes/{self._transfer.volume_id(volume)}/files"
        for page in self._pages(FilePage, "GET", at, prefix=prefix):
            yield from page.items

    def upload_file(
        self, volume: str, file: str | Path, path: str = "", *, overwrite: bool = False, progress: Progress = _quietly
    ) -> FileOut:
        """Send a file to a volume, under its own name or another path. One that broke off is gone on with."""
        source = Path(file)
        identifier = self._transfer.volume_id(volume)
        found = self._transfer.send(identifier, source, path or source.name, progress, overwrite=overwrite)
        return FileOut.model_validate(found)

    def download_file(self, volume: str, path: str, target: str | Path, *, progress: Progress = _quietly) -> Path:
        """Fetch a file of a volume; it replaces the target once it is whole, and has the sum that the server says."""
        return self._transfer.fetch(self._transfer.volume_id(volume), path, Path(target), progress)

    def delete_file(self, volume: str, path: str) -> None:
        """Delete a file of a volume."""
        self.request("DELETE", self._transfer.url(self._transfer.volume_id(volume), path))
