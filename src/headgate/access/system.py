"""What the platform does to tables by itself, for no member: maintenance. It has no path in the rule tables, which are
about members; so whatever is decided for it by those is denied, and this is all that it may.
"""

from headgate.access.decision import DENIED, Decision
from headgate.access.narrowing import Narrowing

MAINTENANCE = Decision(allowed=True, via=("maintenance",))
MAINTAINS = frozenset({"see", "execute", "edit", "delete"})
"""What maintenance has on every table: to load it, to rewrite its files, and to expire its snapshots."""
REWRITES = MAINTAINS - {"delete"}
"""What its token has on the one table that it was made for."""


def decide_system(action: str, kind: str, resource: str | None, token: Narrowing | None) -> Decision:
    """Whether the platform itself may; `token` are the limits of what Spark was given, None without one."""
    allowed = MAINTAINS if token is None else REWRITES
    if kind != "table" or resource is None or action not in allowed:
        return DENIED
    return MAINTENANCE if token is None or token.reaches_id(action, kind, resource, None) else DENIED
