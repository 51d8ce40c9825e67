"""Cuts a result into pages, within the limits of rows and bytes."""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

PAGE_ROWS = 1000


class TooWide(Exception):
    """One row alone is larger than a page may be."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a result is kept, and how large its pages are."""

    rows: int
    bytes: int
    page_bytes: int
    page_rows: int = PAGE_ROWS


class Pager:
    """Makes pages of batches, and counts them. `truncated` says whether rows were left out."""

    def __init__(self, schema: Any, limits: Limits) -> None:
        self._schema, self._limits = schema, limits
        self.rows = self.size = self.pages = 0
        self.truncated = False

    def pages_of(self, batches: Iterable[Any]) -> Iterator[bytes]:
        """Pages as Arrow streams; at least one, which is empty if there are no rows."""
        for table in self._tables(batches):
            for page, rows in self._written(table):
                if self.pages and self.size + len(page) > self._limits.bytes:
                    self.truncated = True
                    return
                yield self._counted(page, rows)
        if self.pages == 0:
            yield self._counted(_stream(self._schema.empty_table()), 0)

    def _counted(self, page: bytes, rows: int) -> bytes:
        self.rows, self.size, self.pages = self.rows + rows, self.size + len(page), self.pages + 1
        return page

    def _tables(self, batches: Iterable[Any]) -> Iterator[Any]:
        """What a page could hold, by rows and by a guess of bytes, up to the limit of rows."""
        import pyarrow as pa

        left, taken, room = self._limits.rows, [], self._limits.page_rows
        size = 0
        for batch in batches:
            if batch.num_rows > left:
                self.truncated = True
            rest = batch.slice(0, left)
            left -= rest.num_rows
            while rest.num_rows:
                piece = rest.slice(0, room)
                taken.append(piece)
                rest, room, size = rest.slice(piece.num_rows), room - piece.num_rows, size + piece.nbytes
                if room == 0 or size >= self._limits.page_bytes:
                    yield pa.Table.from_batches(taken, self._schema)
                    taken, room, size = [], self._limits.page_rows, 0
            if self.truncated:
                break
        if taken:
            yield pa.Table.from_batches(taken, self._schema)

    def _written(self, table: Any) -> Iterator[tuple[bytes, int]]:
        """A table as pages; halved until each fits."""
        page = _stream(table)
        if len(page) <= self._limits.page_bytes:
            yield page, table.num_rows
        elif table.num_rows <= 1:
            raise TooWide
        else:
            half = table.num_rows // 2
            yield from self._written(table.slice(0, half))
            yield from self._written(table.slice(half))


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()
