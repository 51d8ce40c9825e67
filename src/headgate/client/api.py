"""The client class.

with Headgate("https://data.example.com", token="hgt_…") as headgate:
    for mart in headgate.resources("data_mart"):
        print(mart.name, mart.allowed)
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from headgate.client import files, records, statements
from headgate.client.connection import Connection
from headgate.client.files import Progress

T = TypeVar("T")


class Headgate(Connection):
    """A server, used as the member whose token it is."""

    def _typed(self, record: type[T], method: str, path: str, body: Any = None) -> T:
        return next(_records(record, [self.request(method, path, body)]))

    def _listed(self, record: type[T], method: str, path: str, **question: Any) -> Iterator[T]:
        for page in self.pages(method, path, **question):
            yield from _records(record, page["items"])

    def me(self) -> records.Me:
        """The token's member, and their actions on the organization."""
        return self._typed(records.Me, "GET", "/api/access/me")

    def resources(
        self, kind: str, *, action: str | None = None, sort: str = "name", prefix: str = ""
    ) -> Iterator[records.Resource]:
        """All resources of a kind that the member may see, or on which they have an action."""
        question = {"kind": kind, "action": action, "sort": sort, "prefix": prefix}
        return self._listed(records.Resource, "GET", "/api/resources", **question)

    def resource(self, identifier: str) -> records.Resource:
        """A resource by its id."""
        return self._typed(records.Resource, "GET", f"/api/resources/{identifier}")

    def can(self, action: str, resource: str, *, member: str | None = None) -> bool:
        """Whether the member, or another member, has an action on a resource."""
        return self.explain(action, resource, member=member).allowed

    def explain(self, action: str, resource: str, *, member: str | None = None) -> records.Explanation:
        """Whether and why a member has an action; if not, what is missing and who could grant it."""
        body = {"action": action, "resource": resource, "member": member}
        return self._typed(records.Explanation, "POST", "/api/access/explain", body)

    def who_can(self, action: str, resource: str) -> Iterator[records.Named]:
        """All members who have an action on a resource."""
        return self._listed(records.Named, "POST", "/api/access/who-can", action=action, resource=resource)

    def what_can(self, kind: str, *, member: str | None = None) -> Iterator[records.ResourceActions]:
        """All resources of a kind that a member may see, with the member's actions."""
        return self._listed(records.ResourceActions, "POST", "/api/access/what-can", kind=kind, member=member)

    def what_if(self, change: str, **values: Any) -> records.Effects:
        """The actions that members would gain and lose by a change, without making it."""
        return self._typed(records.Effects, "POST", "/api/access/what-if", {"change": {"change": change, **values}})

    def change(self, change: str, **values: Any) -> records.Change:
        """Make a change of access, such as `change("share", resource="data_mart:Sales", for_use=True)`."""
        return self._typed(records.Change, "POST", "/api/access/changes", {"change": change, **values})

    def members(self, *, sort: str = "name") -> Iterator[records.Member]:
        """All members that the token's member may see."""
        return self._listed(records.Member, "GET", "/api/members", sort=sort)

    def invite(self, email: str, role: str, **more: Any) -> records.Invitation:
        """Invite someone. The invitation has the link if the server sends no mail."""
        return self._typed(records.Invitation, "POST", "/api/invitations", {"email": email, "role": role, **more})

    def make_token(self, name: str, **limits: Any) -> records.Token:
        """Create a token for oneself."""
        return self._typed(records.Token, "POST", "/api/tokens", {"name": name, **limits})

    def sql(self, sql: str, *, max_rows: int | None = None, seconds: float | None = None) -> statements.Rows:
        """Run SQL and wait for its end. An interruption cancels the statement.

        for id, amount in headgate.sql("SELECT id, amount FROM service.revenue"): …
        table = headgate.sql("SELECT * FROM service.revenue").arrow()
        """
        return statements.Rows(self, statements.run(self, sql, max_rows, seconds=seconds))

    def files(self, volume: str, *, prefix: str = "") -> Iterator[records.File]:
        """All files of a volume (`raw.invoices`, or an id) whose paths begin with the prefix."""
        path = f"/api/volumes/{files.volume_id(self, volume)}/files"
        return self._listed(records.File, "GET", path, prefix=prefix)

    def upload_file(
        self,
        volume: str,
        file: str | Path,
        path: str = "",
        *,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> records.File:
        """Upload a file to a volume, under its own name or another path. An interrupted upload is resumed."""
        source = Path(file)
        made = files.upload(self, volume, source, path or source.name, progress, overwrite=overwrite)
        return next(_records(records.File, [made]))

    def download_file(self, volume: str, path: str, target: str | Path, *, progress: Progress | None = None) -> Path:
        """Download a file of a volume. The target is replaced when the file is complete and its checksum is right."""
        return files.download(self, volume, path, Path(target), progress)

    def delete_file(self, volume: str, path: str) -> None:
        """Delete a file of a volume."""
        self.request("DELETE", files.url(files.volume_id(self, volume), path))


def _records(record: type[T], values: Iterable[Any]) -> Iterator[T]:
    """Records of JSON objects."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - most commands need no records

    yield from map(TypeAdapter(record).validate_python, values)
