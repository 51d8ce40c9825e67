"""While a disk is full nothing can be written; what was to be written then is not lost."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from headgate.kit.batch_writer import Batches
from headgate.kit.database import Database
from tests.support.installation import eventually


def test_what_waits_to_be_written_is_kept_until_there_is_room(tmp_path: Path) -> None:
    written: list[int] = []
    refused: list[int] = []
    is_full = [True]

    def write(_: Connection, things: Sequence[int]) -> None:
        if is_full[0]:
            refused.extend(things)
            raise OSError(28, "No space left on device")
        written.extend(things)

    batches = Batches(Database(f"sqlite:///{tmp_path}/headgate.db"), write, "things")
    for number in range(3):
        batches.put(number)
    eventually(lambda: len(refused) >= 6)
    is_full[0] = False
    batches.close()
    assert sorted(written) == [0, 1, 2]
