"""Where a credential comes from, and whether somebody else may know it: access model, section 3."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CredentialOrigin:
    """What a credential was made in or with: the id of a session, token, link or invitation; None for the operator.

    It is tainted if somebody else asked for that or saw it, or if that was made in something tainted.
    """

    id: str | None = None
    tainted: bool = False


BY_OPERATOR = CredentialOrigin()
"""Whoever operates the machine can do everything there, so what they make is no way to more."""


def of_link(link: str, member: str, made_by: str | None, *, tainted: bool) -> CredentialOrigin:
    """The origin of what begins with a link. One without a maker was mailed to the member, who asked for it."""
    return CredentialOrigin(link, tainted or made_by not in {None, member})


def of_invitation(invitation: str, invited_by: str | None, *, tainted: bool) -> CredentialOrigin:
    """The origin of what begins with an invitation: somebody else asked for it, unless the operator did."""
    return CredentialOrigin(invitation, tainted or invited_by is not None)
