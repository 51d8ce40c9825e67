"""A volume of the company's, as its members use it over HTTP."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from headgate.organization.access.changes.schemas import Revoke
from headgate.organization.access.service import apply
from headgate.warehouse.locations import open_store
from tests.lakehouse.support import acting
from tests.support.company import Api, Company

VOLUME = "raw.invoices"


class Volume:
    """A volume, and the bytes that lie in the warehouse."""

    def __init__(self, millrace: Company) -> None:
        self.millrace, self.id = millrace, millrace.id("volume", VOLUME)
        self.at = f"/api/volumes/{self.id}"
        self.store = open_store(millrace.settings)

    def url(self, path: str) -> str:
        return f"{self.at}/files/{quote(path)}"

    def put(self, member: str | Api, path: str, content: Any = b"x", headers: Any = None, **query: Any) -> Any:
        api = self.millrace.as_(member) if isinstance(member, str) else member
        return api.request("PUT", self.url(path), content=content, headers=headers or {}, params=query)

    def get(self, member: str | Api, path: str, method: str = "GET", **headers: str) -> Any:
        api = self.millrace.as_(member) if isinstance(member, str) else member
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return api.request(method, self.url(path), headers=sent)

    def delete(self, member: str, path: str) -> Any:
        return self.millrace.as_(member).request("DELETE", self.url(path))

    def stream(self, member: str, path: str, body: Iterable[Any], **headers: str) -> "Answer":
        return streamed(self.millrace.as_(member), "PUT", f"{self.at}/files/{path}", body, **headers)

    def paths(self) -> list[str]:
        rows = self.millrace.rows(f"SELECT path FROM volume_files WHERE volume_id = '{self.id}' ORDER BY path")
        return [row[0] for row in rows]

    def blobs(self) -> set[str]:
        """The ids of the files whose bytes lie in the warehouse."""
        return {entry.path.rpartition("/")[2] for entry in self.store.files(f"volumes/{self.id}")}

    def parts(self) -> set[str]:
        return {entry.path for entry in self.store.files("uploads")}

    def named(self) -> set[str]:
        """The ids of the files that rows name."""
        return {row[0] for row in self.millrace.rows("SELECT id FROM volume_files")}

    def is_whole(self) -> bool:
        """Whether rows and bytes are the same files, each with its own size and sum."""
        for file, size, sha256 in self.millrace.rows("SELECT id, size, sha256 FROM volume_files"):
            content = self.store.read(f"volumes/{self.id}/{file}")
            assert (len(content), hashlib.sha256(content).hexdigest()) == (size, sha256)
        return self.blobs() == self.named()

    def grant(self, to: str, level: str) -> None:
        change = {"change": "grant", "to": to, "resource": f"volume:{VOLUME}", "level": level}
        answer = self.millrace.as_("Adam").change(**change)
        assert answer.status_code == 200, answer.text

    def revoke(self, to: str, level: str) -> None:
        change = {"change": "revoke", "to": to, "resource": f"volume:{VOLUME}", "level": level}
        answer = self.millrace.as_("Adam").change(**change)
        assert answer.status_code == 200, answer.text

    def revoke_at_once(self, to: str, level: str) -> None:
        """The same without HTTP, for the middle of a request."""
        change = Revoke.model_validate({"to": to, "resource": f"volume:{VOLUME}", "level": level})
        acting(self.millrace, "Adam", lambda call: apply(call, change))


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    """A body without a declared length."""
    for begin in range(0, len(content), size):
        yield content[begin : begin + size]


class Answer:
    """What the application answered to a body that came piece by piece."""

    def __init__(self) -> None:
        self.status, self.headers, self.body, self.taken = 0, dict[str, str](), b"", 0

    def json(self) -> Any:
        return json.loads(self.body)


DISCONNECT, STALL = object(), object()


def streamed(api: Api, method: str, path: str, body: Iterable[Any], **headers: str) -> Answer:
    """Send a request whose body comes as the application takes it; it may break off, or stall, in the middle."""
    found, left = Answer(), iter(body)
    own = {"authorization": f"Bearer {api.token}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "query_string": b"",
        "raw_path": path.encode(), "root_path": "", "server": ("testserver", 80), "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in own.items()], "state": {},
    }  # fmt: skip

    async def receive() -> Any:
        piece = await anyio.to_thread.run_sync(next, left, None)
        found.taken += 1
        if piece is DISCONNECT:
            return {"type": "http.disconnect"}
        if piece is STALL:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            found.body += message.get("body", b"")

    async def main() -> None:
        await api.client.app(scope, receive, send)

    anyio.run(main)
    return found


def aged(root: Path, seconds: float) -> None:
    """Let every file below a folder be this much older."""
    for file in root.rglob("*"):
        if file.is_file():
            old = file.stat().st_mtime - seconds
            os.utime(file, (old, old))
