"""Unpack the notebook's wheels inside the sandbox, so that malicious entry names cannot escape it."""

import re
import zipfile
from pathlib import Path

_DATA = re.compile(r"[^/]+\.data/(?:purelib|platlib)/(?P<rest>.+)")
_OTHER_DATA = re.compile(r"[^/]+\.data/")


def unpack(wheels: Path, target: Path) -> None:
    """Unpack all wheels of a folder into a folder on the Python path."""
    target.mkdir(exist_ok=True)
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                named = _DATA.fullmatch(entry.filename)
                if named:
                    entry.filename = named["rest"]
                elif _OTHER_DATA.match(entry.filename):
                    continue
                archive.extract(entry, target)
