"""Audit events carry a mark, which the database keeps as it keeps the rest of them"""

from alembic import op

from headgate.migrations.columns import column, text

revision = "0006"
down_revision = "0005"
_FIXED = ("id", "at", "event", "actor_id", "token_id", "request_id", "action", "kind", "resource_id", "allowed", "mark")
_TEXTS = ("via", "before", "after")


def upgrade() -> None:
    """Go to this version."""
    op.add_column("audit_events", column("mark", text(80), nullable=True))
    if op.get_bind().dialect.name == "sqlite":
        changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in (*_FIXED, *_TEXTS))
        op.execute("DROP TRIGGER audit_events_fixed")
        op.execute(
            "CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON audit_events "
            f"WHEN OLD.seal_number IS NOT NULL OR {changed} "
            "BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END"
        )
        return
    changed = " OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in _FIXED)
    texts = " OR ".join(f"NEW.{name}::text IS DISTINCT FROM OLD.{name}::text" for name in _TEXTS)
    op.execute("DROP TRIGGER audit_events_fixed ON audit_events")
    op.execute(
        "CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON audit_events FOR EACH ROW "
        f"WHEN (OLD.seal_number IS NOT NULL OR {changed} OR {texts}) EXECUTE FUNCTION audit_events_refuse()"
    )
