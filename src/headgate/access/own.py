"""What is one's own: tokens, sessions, invitations and one's own page belong to one member, whatever their role."""

from headgate.access.decision import Decision


def is_own_or(member: str, holder: str | None, decision: Decision) -> bool:
    """Whether a member may handle something of a holder: as their own, or by a decision that reaches everyone's."""
    return bool(member) and (member == holder or bool(decision))
