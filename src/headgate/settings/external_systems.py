"""Settings about places on the workers' own machines."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.settings.sections import Section


def _from_the_root(folder: Path) -> Path:
    if not folder.is_absolute() or ".." in folder.parts or len(folder.parts) < 2:
        raise ValueError("write a folder from the root, such as /srv/incoming, and not the root itself")
    return folder


Folders = tuple[Annotated[Path, AfterValidator(_from_the_root)], ...]


class SourcesSettings(Section):
    """What connections may read: folders on the workers' machines, and how much from outside."""

    folders: Annotated[
        Folders,
        Field(
            description='Folders below which connections of kind `folder` may read, such as `["/srv/incoming"]`: who '
            "may add a connection reads all that the worker's user can read there. None by default."
        ),
    ] = ()
    max_bytes: Annotated[
        int,
        Field(
            ge=1 << 20,
            description="The most bytes of files, or of another catalog's table, that a stream brings to the worker in "
            "one run.",
        ),
    ] = 20 << 30
    max_answer_bytes: Annotated[
        int, Field(ge=1024, le=1 << 30, description="The largest answer of an API that is read, in bytes.")
    ] = 32 << 20
    max_pages: Annotated[
        int, Field(ge=1, description="The most pages of an API that a stream, or a partition of it, reads in one run.")
    ] = 100_000


class DeliveriesSettings(Section):
    """What destinations may write on the workers' machines."""

    folders: Annotated[
        Folders,
        Field(
            description="Folders below which destinations of kind `folder` may write; any member may make a "
            "destination. None by default."
        ),
    ] = ()
