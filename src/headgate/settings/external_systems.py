"""Settings of sources and deliveries."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.settings.group import Group


def _check_folder(folder: Path) -> Path:
    if not folder.is_absolute() or ".." in folder.parts or len(folder.parts) < 2:
        raise ValueError("the folder must be an absolute path below the root, such as /srv/incoming")
    return folder


Folders = tuple[Annotated[Path, AfterValidator(_check_folder)], ...]


class SourcesSettings(Group):
    """Limits of what pipelines ingest."""

    folders: Folders = Field(
        (),
        description="Allowlist of folders on the workers' machines that connections of kind `folder` may read, such as "
        '`["/srv/incoming"]`. Whoever may add a connection can read everything below them that the worker\'s user can '
        "read. Default: none.",
    )
    max_bytes: int = Field(
        20 << 30,
        ge=1 << 20,
        description="Maximum number of bytes that a stream downloads in one run, as files or Iceberg tables.",
    )
    max_answer_bytes: int = Field(
        32 << 20, ge=1024, le=1 << 30, description="Maximum size of one response of a REST API, in bytes."
    )
    max_pages: int = Field(
        100_000,
        ge=1,
        description="Maximum number of pages that a REST stream or partition reads in one run.",
    )


class DeliveriesSettings(Group):
    """Limits of what pipelines deliver."""

    folders: Folders = Field(
        (),
        description="Allowlist of folders on the workers' machines that destinations of kind `folder` may write. Every "
        "member may add a destination. Default: none.",
    )
