"""Connection checks of local folders below an allowed root; symbolic links that lead out of the folder are ignored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from headgate.execution.connection_checks.checks import CheckRequest, Streams
from headgate.execution.steps.context import StepFailed
from headgate.outgoing.folders import FolderNotAllowed, Root, opened

MOST_LOOKED_AT = 200_000


def test(asked: CheckRequest) -> str:
    """Check that the folder exists and is readable, or writable for a destination."""
    with _root(asked) as root:
        if asked.writes:
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=root.handle):
                raise StepFailed(
                    "DENIED_THERE", f"The worker's user has no write permission for {asked.config['path']}"
                )
            return "The folder exists and is writable"
        if not os.access(".", os.R_OK | os.X_OK, dir_fd=root.handle):
            raise StepFailed("DENIED_THERE", f"The worker's user has no read permission for {asked.config['path']}")
        return "The folder exists and is readable"


def discover(asked: CheckRequest) -> Streams:
    """List the files below the folder that match the pattern."""
    streams = Streams(asked.limit)
    with _root(asked) as root:
        for looked, file in enumerate(root.files()):
            if looked >= MOST_LOOKED_AT:
                streams.truncated = True
                break
            asked.check_time()
            if not asked.wants(file.name) or not file.name.isprintable():
                continue
            modified = datetime.fromtimestamp(file.facts.st_mtime, UTC).isoformat()
            if not streams.add(file.name, "file", bytes=file.facts.st_size, modified_at=modified):
                break
    return streams


@contextmanager
def _root(asked: CheckRequest) -> Iterator[Root]:
    setting = "deliveries.folders" if asked.writes else "sources.folders"
    settings = asked.settings
    allowed = settings.deliveries.folders if asked.writes else settings.sources.folders
    try:
        with opened(asked.config["path"], allowed, setting) as root:
            yield root
    except FolderNotAllowed as error:
        raise StepFailed("FOLDER_REFUSED", str(error)) from None
