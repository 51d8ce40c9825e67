"""The product as a benchmark starts it: with the options that users have, not those that tests use to start quickly."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from tests.support.installation import Installation, installed


class Product(Installation):
    """An installation with the product's own defaults."""

    DEFAULTS: ClassVar[Mapping[str, str]] = {}


@contextmanager
def product(folder: Path, url: str | None = None, *, spark: bool = True, **settings: str) -> Iterator[Installation]:
    """An installation that leaves no process behind; without `spark`, none is started before it is asked for.

    What asks Spark nothing is measured without it: its start would take half of the machine meanwhile.
    """
    if not spark:
        settings["HEADGATE_SPARK__PREWARM"] = "false"
    with installed(folder, url, of=Product, **settings) as installation:
        yield installation
