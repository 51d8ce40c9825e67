"""Names of destinations and spaces are no longer unique for each creator, who may not see all of them any more"""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Go to this version."""
    op.create_index("ix_resources_name", "resources", ["namespace", "name_key"])
    op.execute(
        "UPDATE resources SET scope_id = id "
        "WHERE kind IN ('destination', 'space') OR (scope_id = '' AND kind <> 'layer')"
    )
