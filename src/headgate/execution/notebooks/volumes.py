"""Provide the files of declared volumes to a notebook, read-only and under their own names."""

import errno
import os
import shutil
import stat
from pathlib import Path

from headgate.contracts.pipelines.steps import RunNotebook
from headgate.contracts.volume_paths import check_path
from headgate.execution.steps.context import Context, StepFailed, VolumeFile
from headgate.kit.names import BadName

MAX_FILES = 100_000


def lay_out(step: RunNotebook, context: Context, folder: Path) -> int:
    """Make a folder for each volume with its files in it: the very ones, or copies if they lie on another disk.

    How many files there are.
    """
    folder.mkdir(mode=0o700)
    copies = folder.with_name("copies")
    copies.mkdir(mode=0o700)
    room, count = context.settings.notebooks.disk_bytes, 0
    for volume in step.volumes:
        root = folder / str(volume)
        root.mkdir(mode=0o700)
        for file in context.volumes.files(volume.id):
            context.check_stopped()
            count += 1
            if count > MAX_FILES:
                raise StepFailed(
                    "TOO_MANY_FILES", f"its volumes have more than {MAX_FILES} files; declare fewer volumes"
                )
            source = context.volumes.local(volume.id, file, copies)
            room -= _place(source, root, file, room)
    return count


def _place(source: Path, root: Path, file: VolumeFile, room: int) -> int:
    """Link or copy a file to its path below a root; return the bytes copied."""
    try:
        target = root / check_path(file.path)
        if not stat.S_ISREG(source.lstat().st_mode):
            raise BadName("it is not a regular file")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.link(source, target, follow_symlinks=False)
    except (BadName, FileExistsError, NotADirectoryError) as error:
        raise StepFailed(
            "FILE_REFUSED", f"cannot provide {file.path} to the notebook: {_why(error)}; rename or delete the file"
        ) from None
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
            raise
        if file.size > room:
            raise StepFailed(
                "TOO_MANY_BYTES",
                "its volumes are on another disk and larger than `notebooks.disk_bytes`; declare smaller "
                "volumes, or ask the operator to put `data_dir` on the disk of the warehouse",
            ) from None
        shutil.copyfile(source, target)
        return file.size
    return 0


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, BadName) else "a file of the volume has the same name as one of its folders"
