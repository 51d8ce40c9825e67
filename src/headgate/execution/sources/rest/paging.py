"""Pagination: yields pages until there are no more."""

import hashlib
from collections.abc import Iterator
from typing import Any

from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.http_calls import Caller
from headgate.execution.sources.rest.requests import Pages, RequestOptions
from headgate.execution.sources.rest.responses import at, linked, parsed, rows
from headgate.execution.sources.rest.wire import HttpResponse

_LONGEST_CURSOR = 4096


def pages(caller: Caller, asked: RequestOptions, partition: str | None = None) -> Iterator[list[Any]]:
    """The rows of each page of one partition."""
    given = dict(asked.parameters)
    if partition is not None:
        given[asked.partition_parameter] = partition
    turner = _TURNERS[asked.pages.style](asked.pages, caller)
    url, own = caller.start(), turner.first()
    for number in range(1, asked.limits.pages + 1):
        answer = caller.get(url, {**given, **own})
        if answer.status == 404:
            if number > 1 and turner.may_overrun:
                return
            raise caller.missing(answer)
        body = parsed(answer.body, answer.headers.get("content-type", ""))
        results = rows(body, asked.rows)
        turner.look(answer, results)
        if results:
            yield results
        turned = turner.turn(url, answer, body, results)
        if turned is None:
            return
        url, own = turned
        if turner.is_whole:
            given = {}
    told = (
        f"There are more than {asked.limits.pages:,} pages at {caller.shown()}; request more rows per page, or split "
    )
    raise ApiFailed("API_TOO_MANY_PAGES", told + "the stream by a parameter")


Turned = tuple[str, dict[str, str]] | None
"""The URL and own parameters of the next page."""


class _One:
    """All rows are in one response."""

    may_overrun = False
    """Whether a missing page means that the previous one was the last."""

    is_whole = False
    """Whether the next URL contains all parameters."""

    def __init__(self, paging: Pages, caller: Caller) -> None:
        self._paging, self._caller = paging, caller
        self._seen: set[bytes] = set()

    def first(self) -> dict[str, str]:
        """The parameters of the first page."""
        return {}

    def look(self, answer: HttpResponse, result: list[Any]) -> None:
        """Check a page before its rows are read; ApiFailed if it repeats an earlier page."""

    def turn(self, url: str, answer: HttpResponse, body: Any, result: list[Any]) -> Turned:
        """The next page; None if this is the last."""
        return None

    def _sized(self) -> dict[str, str]:
        name = self._paging.size_parameter
        return {name: str(self._paging.size)} if name else {}

    def _once(self, what: str, told: str) -> None:
        """Record a reference to a page; ApiFailed if it was used before."""
        mark = hashlib.sha256(what.encode("utf-8", "surrogatepass")).digest()[:16]
        if mark in self._seen:
            raise ApiFailed("API_LOOP", f"The pages of {self._caller.shown()} form a loop: {told}")
        self._seen.add(mark)


class _Numbered(_One):
    """Pages by page number or row offset. The first empty page ends the list."""

    may_overrun = True

    def __init__(self, paging: Pages, caller: Caller) -> None:
        super().__init__(paging, caller)
        self._at = paging.first
        self._last = b""

    def first(self) -> dict[str, str]:
        return {self._paging.parameter: str(self._at), **self._sized()}

    def look(self, answer: HttpResponse, result: list[Any]) -> None:
        # A page shorter than requested is not necessarily the last: many APIs return fewer rows.
        page = hashlib.sha256(answer.body).digest()
        if result and page == self._last:
            told = f"The API returns the same page for {self._paging.parameter}={self._at}; it may not support this "
            raise ApiFailed("API_LOOP", told + "parameter, so check the style and parameter of the paging")
        self._last = page

    def turn(self, url: str, answer: HttpResponse, body: Any, result: list[Any]) -> Turned:
        if not result:
            return None
        self._at += 1 if self._paging.style == "page" else len(result)
        return url, self.first()


class _Cursor(_One):
    """Each response contains a cursor for the next."""

    def first(self) -> dict[str, str]:
        return self._sized()

    def turn(self, url: str, answer: HttpResponse, body: Any, result: list[Any]) -> Turned:
        value = _at(body, self._paging.next)
        if value is None or value is False or value == "":
            return None
        if isinstance(value, dict | list) or value is True or len(str(value)) > _LONGEST_CURSOR:
            told = f"The value at {self._paging.next!r} in the response cannot be a cursor; check `next` of the paging"
            raise ApiFailed("API_SHAPE", told)
        text = str(value)
        self._once(text, "the API returned the same cursor twice")
        return url, {self._paging.parameter: text, **self._sized()}


class _Link(_One):
    """Each response links to the next: in a header or a field."""

    is_whole = True

    def first(self) -> dict[str, str]:
        return self._sized()

    def turn(self, url: str, answer: HttpResponse, body: Any, result: list[Any]) -> Turned:
        place = self._paging.next
        target = _at(body, place) if place else linked(answer.headers.get("link", ""))
        if target is None or target is False or target == "":
            return None
        if not isinstance(target, str):
            told = f"The value at {place!r} in the response is not a URL; check `next` of the paging"
            raise ApiFailed("API_SHAPE", told)
        found_url = self._caller.joined(url, target)
        self._once(found_url, "the API links to a page that was already read")
        return found_url, {}


def _at(body: Any, path: str) -> Any:
    try:
        return at(body, path)
    except LookupError:
        return None


_TURNERS = {"none": _One, "page": _Numbered, "offset": _Numbered, "cursor": _Cursor, "link": _Link}
