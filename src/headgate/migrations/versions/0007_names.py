"""Names of destinations and spaces are not unique for each creator any more; what removed members owned is kept"""

import sqlalchemy as sa
from alembic import op

from headgate.migrations.columns import column, key, text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Go to this version."""
    op.create_index("ix_resources_name", "resources", ["namespace", "name_key"])
    op.execute(
        "UPDATE resources SET scope_id = id "
        "WHERE kind IN ('destination', 'space') OR (scope_id = '' AND kind <> 'layer')"
    )
    op.create_table(
        "former_owners",
        column("resource_id", text(32)),
        column("ownership", text(40)),
        column("member_id", text(32)),
        key("former_owners", "resource_id", "resources", ondelete="CASCADE"),
        key("former_owners", "member_id", "members"),
        sa.PrimaryKeyConstraint("resource_id", "ownership", name="pk_former_owners"),
    )
    op.create_index("ix_former_owners_member_id", "former_owners", ["member_id"])
