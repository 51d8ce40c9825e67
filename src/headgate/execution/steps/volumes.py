"""The files of volumes on a worker: read in place from a warehouse in a folder, copied from one in a bucket."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headgate.execution.steps.context import StepFailed, VolumeFile
from headgate.settings.settings import Settings
from headgate.warehouse.locations import open_store, volume_file
from headgate.warehouse.store import Missing, StoreUnavailable

_PIECE = 1 << 20


class StoredVolumes:
    """Volumes whose bytes this worker reaches by its own settings; `listing` asks the server for what one holds."""

    def __init__(self, settings: Settings, listing: Callable[[str], Sequence[VolumeFile]]) -> None:
        self._settings, self._listing = settings, listing

    def files(self, volume: str) -> list[VolumeFile]:
        """What a volume holds now."""
        return list(self._listing(volume))

    def local(self, volume: str, file: VolumeFile, folder: Path) -> Path:
        """Where its bytes are on this machine."""
        parts = urlsplit(self._settings.warehouse_url)
        if parts.scheme == "file":
            path = Path(unquote(parts.path), volume_file(volume, file.id))
            if not path.is_file():
                raise _gone(file)
            return path
        copy = folder / file.id
        try:
            with open_store(self._settings).open(volume_file(volume, file.id)) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
        except Missing:
            raise _gone(file) from None
        except StoreUnavailable as error:
            raise StepFailed("WAREHOUSE_DOWN", str(error), passing=True) from None
        return copy


def _gone(file: VolumeFile) -> StepFailed:
    return StepFailed(
        "FILE_GONE", f"{file.path} was deleted or replaced while the run started; run the pipeline again", passing=True
    )
