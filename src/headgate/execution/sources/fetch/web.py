"""A file behind an address: the stream's name is its path below the connection's."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import Http
from headgate.contracts.pipelines.steps import Land
from headgate.execution.sources.fetch.archives import unpacked
from headgate.execution.sources.fetch.credentials import authorized, posted
from headgate.execution.sources.fetch.downloads import Downloads, Fetched, Terms
from headgate.execution.sources.rest.auth import Credentials
from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.http_calls import below
from headgate.execution.steps.context import Context, StepFailed, VolumeFile
from headgate.execution.steps.files import FetchedFiles, empty_folder, gathered
from headgate.outgoing.client import Outgoing

_PAGES = frozenset({"text/html", "application/xhtml+xml"})


def from_web(step: Land, endpoint: Endpoint, context: Context, state: dict[str, Any] | None) -> FetchedFiles:
    """The file, or the files of an archive; none if it has not changed since the last run."""
    if "*" in step.stream.name:
        told = "An HTTP stream is one file, so its name cannot contain *; add a stream for each file"
        raise StepFailed("NO_PATTERN", told)
    place = Http.model_validate(endpoint.config)
    folder = empty_folder(step, context, "copies")
    outgoing = Outgoing(context.settings.outgoing)
    try:
        downloads = Downloads(outgoing, Terms.of(context), retries=place.retries)
        got = _fetched(step, place, endpoint.secrets, downloads, outgoing, folder / "file")
        _refuse_page(step, got)
        moment = datetime.now(UTC)
        file = VolumeFile(got.sha256[:24], step.stream.name.lstrip("/"), got.size, moment)
        fetched_files = gathered(step, context, [file], state, lambda _: got.path)
        fetched_files.files = unpacked(fetched_files.files, step.stream.files.format, folder, downloads.budget)
        return fetched_files
    finally:
        outgoing.close()


def _fetched(
    step: Land, place: Http, secrets: Mapping[str, str], downloads: Downloads, outgoing: Outgoing, target: Any
) -> Fetched:
    auth = authorized(place, secrets)
    try:
        url = below(place.base_url, step.stream.name)
        credentials = Credentials(auth, lambda *more: posted(outgoing, *more))
        given = {**step.stream.api.parameters, **credentials.parameters()}
        if given:
            url += ("&" if "?" in url else "?") + urlencode(given)
        return downloads.file(
            url, target, headers=lambda: {**place.headers, **credentials.headers()}, name=_plain(step.stream.name)
        )
    except ApiFailed as error:
        raise StepFailed(error.code, error.message, passing=error.passing) from None


def _refuse_page(step: Land, got: Fetched) -> None:
    if got.content_type in _PAGES and step.stream.files.format != "xml":
        told = f"{_plain(step.stream.name)} is a web page, not a file; it may be a login page, so check the address "
        raise StepFailed("FILE_IS_A_PAGE", told + "and the connection's secret")


def _plain(name: str) -> str:
    """The name of the file, without query parameters."""
    return name.partition("?")[0].lstrip("/") or "the file"
