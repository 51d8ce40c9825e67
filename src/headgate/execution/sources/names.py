"""Column names: valid in SQL, and unique ignoring case."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

MAX_LENGTH = 200
_UNSAFE = re.compile(r"\W+")


def safe(name: str, place: int) -> str:
    """A name of letters, digits and _, in lower case; a name without any becomes its position, from 1."""
    result = _UNSAFE.sub("_", unicodedata.normalize("NFC", name)).strip("_").lower()[:MAX_LENGTH]
    if not result:
        return f"column_{place}"
    return f"_{result}" if result[0].isdigit() else result


def columns(names: Sequence[str], known: Iterable[str] = ()) -> list[str]:
    """What each of a source's columns is called in the table: as it is there already, else safe and unique.

    Names that are safe as they are get theirs first, so that another column beside does not rename them.
    """
    there = {name.lower(): name for name in known}
    wanted = [safe(name, place) for place, name in enumerate(names, 1)]
    order = sorted(range(len(names)), key=lambda place: (names[place] != wanted[place], place))
    taken: set[str] = set()
    results = [""] * len(names)
    for place in order:
        name, number = wanted[place], 2
        if names[place].lower() in there and names[place].lower() not in taken:
            name = names[place].lower()
        while name in taken:
            name, number = f"{wanted[place]}_{number}", number + 1
        taken.add(name)
        results[place] = there.get(name, name)
    return results


def place_of(wanted: str, names: Sequence[str], columns_: Sequence[str]) -> int | None:
    """The index of a column that a member names: by the source's name, the name ignoring case, or the table's name;
    None if there is none.
    """
    for known in (list(names), [name.lower() for name in names], [name.lower() for name in columns_]):
        for text in (wanted, wanted.lower()):
            if text in known:
                return known.index(text)
    return None
