"""Over random worlds: after a group is deleted, the index is the one that would be built anew."""

from typing import Any

import pytest
from sqlalchemy import Connection, text

from headgate.access.decision import Decision
from headgate.kit.database import Database
from headgate.organization.groups.service import remove
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.unit_of_work.call import Call, Caller
from tests.support.strategies import world_of
from tests.support.worlds import NOW, reload

pytestmark = pytest.mark.both_databases


class Allowed(Call):
    """A call by somebody who may do everything."""

    def require(self, action: str, kind: str, resource: str | None) -> Decision:
        return Decision(allowed=True, via=("test",))


def index(connection: Connection) -> set[Any]:
    return {tuple(row) for row in connection.execute(text("SELECT * FROM audience"))}


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_the_index_stays_true_when_groups_are_deleted(shared_database: Database, start: int) -> None:
    ended = 0
    for seed in range(start, start + 10):
        reload(shared_database, world_of(seed)[0])
        for name in ("g1", "g2"):

            def work(connection: Connection, name: str = name) -> dict[str, Any]:
                group = Lookup(connection).of("group", name)
                assert group
                return remove(Allowed(connection, NOW, Caller("mbr_test"), None), group)  # type: ignore[arg-type]

            ended += len(shared_database.write(work)["grants"])
            with shared_database.read() as connection:
                kept = index(connection)
            shared_database.write(rebuild)
            with shared_database.read() as connection:
                assert kept == index(connection), (seed, name)
    assert ended, "no group had a grant"
