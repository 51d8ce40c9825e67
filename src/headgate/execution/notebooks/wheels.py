"""Dependencies of a notebook: wheels from volumes, validated before they are provided to it."""

import platform
import re
import shutil
import stat
import sys
import zipfile
from pathlib import Path

from headgate.contracts.pipelines.steps import RunNotebook
from headgate.execution.steps.context import Context, StepFailed

MAX_BYTES = 500 << 20
MAX_UNPACKED = 2 << 30
MAX_ENTRIES = 50_000
_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)(?:-[0-9][A-Za-z0-9_.]*)?"
    r"-(?P<python>[a-z0-9_.]+)-(?P<abi>[a-z0-9_.]+)-(?P<platform>[a-z0-9_.]+)\.whl"
)
_OWN_PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"


class BadWheel(ValueError):
    """An invalid wheel; the message says why."""


def lay_out(step: RunNotebook, context: Context, folder: Path) -> None:
    """Copy the wheels that a notebook declared into a folder, each under its own name."""
    folder.mkdir(mode=0o700)
    listed = {volume.id: context.volumes.files(volume.id) for volume, _ in step.wheels}
    for volume, path in step.wheels:
        result = next((file for file in listed[volume.id] if file.path == path), None)
        if result is None:
            raise StepFailed(
                "WHEEL_MISSING", f"{volume} has no file {path}; upload the wheel, or remove it from the dependencies"
            )
        name = path.rpartition("/")[2]
        try:
            check_name(name)
            local = context.volumes.local(volume.id, result, folder)
            check(local)
        except BadWheel as error:
            raise StepFailed("WHEEL_REFUSED", f"{path} in {volume}: {error}") from None
        if (folder / name).exists():
            raise StepFailed("WHEEL_REFUSED", f"two wheels are called {name}; remove one from the dependencies")
        if local.parent == folder:
            local.rename(folder / name)
        else:
            shutil.copyfile(local, folder / name)


def check_name(name: str) -> None:
    """Refuse what is not called as a wheel is, or is for another Python or machine."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise BadWheel("the name of a wheel is NAME-VERSION-PYTHON-ABI-PLATFORM.whl")
    pythons, platforms = match["python"].split("."), match["platform"].split(".")
    if not any(_runs_here(python, match["abi"]) for python in pythons):
        raise BadWheel(
            f"it is built for {match['python']}, but notebooks run on {_OWN_PYTHON}; use the wheel for {_OWN_PYTHON}"
        )
    machine = platform.machine()
    if not any(
        platform == "any" or (platform.endswith(f"_{machine}") and "linux" in platform) for platform in platforms
    ):
        raise BadWheel(
            f"it is built for {match['platform']}, but notebooks run on linux_{machine}; use the wheel for "
            f"linux_{machine}"
        )


def _runs_here(python: str, abi: str) -> bool:
    if python in {"py3", _OWN_PYTHON} or re.fullmatch(r"py3\d{1,2}", python):
        return True
    older = re.fullmatch(r"cp3(\d{1,2})", python)
    return older is not None and "abi3" in abi.split(".") and int(older[1]) <= sys.version_info.minor


def check(file: Path) -> None:
    """Refuse what is not an archive as wheels are: with names that lead out of it, links, or too much in it."""
    if file.is_symlink() or not file.is_file():
        raise BadWheel("it is not a regular file")
    if file.stat().st_size > MAX_BYTES:
        raise BadWheel(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        with zipfile.ZipFile(file) as archive:
            listed = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        raise BadWheel("it is not a zip archive, as wheels are") from None
    if len(listed) > MAX_ENTRIES or sum(member.file_size for member in listed) > MAX_UNPACKED:
        raise BadWheel(f"it has more than {MAX_ENTRIES} files, or is larger than {MAX_UNPACKED >> 30} GiB unpacked")
    for entry in listed:
        _check_entry(entry)
    names = [member.filename for member in listed]
    if len(set(names)) < len(names):
        raise BadWheel("two of its entries have the same name")
    if not any(re.fullmatch(r"[^/]+\.dist-info/WHEEL", name) for name in names):
        raise BadWheel("it is a zip archive, but not a wheel: it has no .dist-info/WHEEL")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    # The name as it is in the archive: what zipfile makes of it is cut at the character zero.
    name = entry.orig_filename
    parts = name.removesuffix("/").split("/")
    if any(part in {"", ".", ".."} for part in parts) or any(c in name for c in "\\\0:") or not name.isprintable():
        raise BadWheel(f"its entry {name[:100]!r} has an unsafe path")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise BadWheel(f"its entry {name[:100]!r} is not a regular file")
    if entry.flag_bits & 1:
        raise BadWheel(f"its entry {name[:100]!r} is encrypted")
