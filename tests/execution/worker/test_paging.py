"""Results are cut into pages, within limits of rows and bytes."""

import random
import string

import pyarrow as pa
import pytest

from headgate.execution.worker.result_pages import Limits, Pager, TooWide


def cut(table: pa.Table, *, rows: int = 10**9, size: int = 10**9, page: int = 1 << 20) -> tuple[Pager, list[pa.Table]]:
    pager = Pager(table.schema, Limits(rows, size, page))
    pages = list(pager.pages_of(table.to_batches(max_chunksize=777)))
    assert all(len(one) <= page for one in pages)
    assert (pager.pages, pager.size) == (len(pages), sum(map(len, pages)))
    return pager, [pa.ipc.open_stream(one).read_all() for one in pages]


def numbers(count: int) -> pa.Table:
    return pa.table({"n": range(count)})


@pytest.mark.parametrize("count", [0, 1, 777, 1000, 1001, 10_500])
def test_every_row_is_in_one_page_of_a_thousand(count: int) -> None:
    pager, pages = cut(numbers(count))
    assert pa.concat_tables(pages) == numbers(count)
    assert [one.num_rows for one in pages] == [1000] * (count // 1000) + (
        [count % 1000] if count % 1000 or not count else []
    )
    assert (pager.rows, pager.truncated) == (count, False)


@pytest.mark.parametrize(("limit", "truncated"), [(1, True), (999, True), (2499, True), (2500, False), (9999, False)])
def test_rows_above_the_limit_are_left_out_and_that_is_said(limit: int, truncated: bool) -> None:
    pager, pages = cut(numbers(2500), rows=limit)
    assert pa.concat_tables(pages) == numbers(2500).slice(0, limit)
    assert (pager.rows, pager.truncated) == (min(limit, 2500), truncated)


def test_large_rows_make_pages_of_fewer() -> None:
    source = random.Random(5)  # noqa: S311 - the same each time
    texts = ["".join(source.choices(string.ascii_letters, k=source.choice([1, 50_000, 400_000]))) for _ in range(60)]
    pager, pages = cut(pa.table({"s": texts}))
    assert [text for one in pages for text in one.column("s").to_pylist()] == texts
    assert pager.pages > 5


def test_bytes_above_the_limit_are_left_out_and_that_is_said() -> None:
    pager, pages = cut(numbers(50_000), size=100_000)
    assert pager.truncated
    assert pager.size <= 100_000
    assert pa.concat_tables(pages) == numbers(50_000).slice(0, pager.rows)
    assert pager.rows > 5000


def test_a_row_that_fits_into_no_page_is_told() -> None:
    with pytest.raises(TooWide):
        cut(pa.table({"s": ["x" * 2000]}), page=1024)


def test_a_result_without_columns_has_one_empty_page() -> None:
    pager, pages = cut(pa.table({}))
    assert (pager.rows, pager.pages, pages[0].num_columns) == (0, 1, 0)
