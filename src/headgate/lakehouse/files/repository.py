"""Database access to files of volumes."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, and_, select

from headgate.contracts.volume_paths import LAST, path_key
from headgate.kit.paging import Cursor
from headgate.lakehouse.files.models import volume_file_table
from headgate.lakehouse.files.schemas import FileOut
from headgate.organization.members.schemas import Named
from headgate.platform.directory.models import member_table
from headgate.platform.http.paging import begins_after

_files, _members = volume_file_table.c, member_table.c


def _query() -> Select[Any]:
    present = and_(_members.id == _files.created_by_id, _members.removed_at.is_(None))
    joined = volume_file_table.outerjoin(member_table, present)
    return select(volume_file_table, _members.name.label("creator")).select_from(joined)


def shown(row: Any) -> FileOut:
    """A row of `one`, `alike` or a page as an API schema."""
    creator = Named(id=row["created_by_id"], name=row["creator"]) if row["creator"] is not None else None
    own = ("id", "path", "size", "sha256", "media_type", "created_at")
    return FileOut(**{name: row[name] for name in own}, created_by=creator)


def one(connection: Connection, volume: str, path: str) -> Any:
    """The file with exactly this path, or None."""
    result = alike(connection, volume, path)
    return result if result is not None and result["path"] == path else None


def alike(connection: Connection, volume: str, path: str) -> Any:
    """The file with this path, or one that differs only in case or Unicode normalization; otherwise None."""
    query = _query().where(_files.volume_id == volume, _files.path_key == path_key(path))
    return connection.execute(query).mappings().one_or_none()


def by_id(connection: Connection, identifier: str) -> Any:
    """The file with this id, or None."""
    return connection.execute(_query().where(_files.id == identifier)).mappings().one_or_none()


@dataclass(slots=True)
class Page:
    """A page of a volume: files, folders, and the next cursor."""

    files: list[FileOut] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    next_cursor: str | None = None


def page(connection: Connection, volume: str, prefix: str, limit: int, cursor: str | None, *, by_folder: bool) -> Page:
    """Files whose paths start with a prefix, in order. With `by_folder`, paths with a further slash are grouped into
    one entry.
    """
    asked = hashlib.sha256(prefix.encode()).hexdigest()
    purpose = f"files of {volume} {'by folder' if by_folder else 'flat'} {asked}"
    begin = begins_after(cursor, purpose)
    page, last = Page(), ""
    for path, row in _entries(connection, volume, prefix, limit, begin.value if begin else "", by_folder=by_folder):
        if len(page.files) + len(page.folders) == limit:
            page.next_cursor = Cursor(last, volume).encode(purpose)
            break
        if row is None:
            page.folders.append(path)
        else:
            page.files.append(shown(row))
        last = path
    return page


def _entries(
    connection: Connection, volume: str, prefix: str, limit: int, after: str, *, by_folder: bool
) -> Iterator[tuple[str, Any]]:
    """Each file with its row, and each folder once; the content of a folder is skipped, however large."""
    place = after
    while rows := _rows(connection, volume, prefix, place, limit + 1):
        for row in rows:
            folder = _folder(row["path"], prefix) if by_folder else None
            if folder is not None and folder == place:
                continue
            place = folder or row["path"]
            yield place, None if folder else row


def _folder(path: str, prefix: str) -> str | None:
    rest, slash, _ = path[len(prefix) :].partition("/")
    return f"{prefix}{rest}/" if slash else None


def _rows(connection: Connection, volume: str, prefix: str, after: str, limit: int) -> Sequence[Any]:
    """Rows after a position: a path, or a whole folder, which ends with a slash."""
    query = _query().where(_files.volume_id == volume)
    if prefix:
        query = query.where(_files.path >= prefix, _files.path < prefix + LAST)
    if after:
        query = query.where(_files.path > (after + LAST if after.endswith("/") else after))
    return connection.execute(query.order_by(_files.path).limit(limit)).mappings().all()
