"""The locations of files in a warehouse, by the ids of their objects, and the store that the settings name.

tables/ID/      a table's root: data files and manifests, written by engines
metadata/ID/    its metadata files: written by the catalog, readable and never writable for engines
volumes/ID/     the files of a volume, each under its own id
uploads/ID/     parts of an upload under way
results/ID/     pages of a statement's result
staging/ID/     what a notebook saved in a run, by the run's fence, until the run is published
"""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from headgate.settings.settings import Settings
from headgate.warehouse.folder import FolderStore
from headgate.warehouse.store import Store


def open_store(settings: Settings) -> Store:
    """The store that the settings name."""
    parts = urlsplit(settings.warehouse_url)
    if parts.scheme == "file":
        return FolderStore(Path(unquote(parts.path)))
    from headgate.warehouse.bucket import BucketStore  # noqa: PLC0415 - loads Arrow

    return BucketStore(settings)


def table_root(table: str) -> str:
    """A table's root."""
    return f"tables/{table}"


def metadata_root(table: str) -> str:
    """The folder of a table's metadata files."""
    return f"metadata/{table}"


def volume_file(volume: str, file: str) -> str:
    """A file of a volume."""
    return f"volumes/{volume}/{file}"


def upload_root(upload: str) -> str:
    """The folder of an upload's parts."""
    return f"uploads/{upload}"


def upload_part(upload: str, begins: int) -> str:
    """The part of an upload that begins at this byte."""
    return f"uploads/{upload}/{begins:020}"


def staging_root(run: str) -> str:
    """What notebooks saved in a run, by its fences."""
    return f"staging/{run}"


def result_page(statement: str, number: int) -> str:
    """A page of a statement's result."""
    return f"results/{statement}/{number:06}.arrow"
