"""Settings about places on the workers' own machines."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.sections import Section


def _from_the_root(folder: Path) -> Path:
    if not folder.is_absolute() or ".." in folder.parts or len(folder.parts) < 2:
        raise ValueError("write a folder from the root, such as /srv/incoming, and not the root itself")
    return folder


Folders = tuple[Annotated[Path, AfterValidator(_from_the_root)], ...]


class SourcesSettings(Section):
    """What connections may read on the workers' machines."""

    folders: Annotated[
        Folders,
        Field(
            description='Folders below which connections of kind `folder` may read, such as `["/srv/incoming"]`: who '
            "may add a connection reads all that the worker's user can read there. None by default."
        ),
    ] = ()


class DeliveriesSettings(Section):
    """What destinations may write on the workers' machines."""

    folders: Annotated[
        Folders,
        Field(
            description="Folders below which destinations of kind `folder` may write; any member may make a "
            "destination. None by default."
        ),
    ] = ()
