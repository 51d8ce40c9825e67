"""A folder on this machine, below one that the settings allow; links that lead out of it are left aside."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from headgate.places.folders import OutOfBounds, inside, opened
from headgate.worker.answers.asked import Asked, Streams
from headgate.worker.steps.context import StepFailed

MOST_LOOKED_AT = 200_000


def test(asked: Asked) -> str:
    """Whether the folder is there, and can be read, or written if it is a destination's."""
    root = _root(asked)
    if asked.writes:
        if not os.access(root, os.W_OK | os.X_OK):
            raise StepFailed("DENIED_THERE", f"The worker's user may not write into {asked.config['path']}")
        return "The folder is there, and can be written to"
    if not os.access(root, os.R_OK | os.X_OK):
        raise StepFailed("DENIED_THERE", f"The worker's user may not read {asked.config['path']}")
    return "The folder is there, and can be read"


def discover(asked: Asked) -> Streams:
    """The files below the folder that match."""
    streams, root = Streams(asked.limit), _root(asked)
    for looked, file in enumerate(_files(root)):
        if looked >= MOST_LOOKED_AT:
            streams.truncated = True
            break
        asked.check_time()
        name = str(file.relative_to(root))
        if not asked.wants(name) or not name.isprintable() or not inside(file, root) or not file.is_file():
            continue
        facts = file.stat()
        modified = datetime.fromtimestamp(facts.st_mtime, UTC).isoformat()
        if not streams.add(name, "file", bytes=facts.st_size, modified_at=modified):
            break
    return streams


def _root(asked: Asked) -> Path:
    setting = "deliveries.folders" if asked.writes else "sources.folders"
    settings = asked.settings
    allowed = settings.deliveries.folders if asked.writes else settings.sources.folders
    try:
        return opened(asked.config["path"], allowed, setting)
    except OutOfBounds as error:
        raise StepFailed("FOLDER_REFUSED", str(error)) from None


def _files(root: Path) -> Iterator[Path]:
    """Every name below a folder that is not a folder, in order; links to folders are not followed."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            yield Path(folder, name)
