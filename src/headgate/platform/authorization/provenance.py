"""The origin of a credential, and whether somebody else may know it: access model, section 3."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CredentialOrigin:
    """The session, token, link or invitation that a credential was created with; None for the operator.

    A credential is tainted if somebody else requested or saw its origin, or if the origin is tainted.
    """

    id: str | None = None
    tainted: bool = False


BY_OPERATOR = CredentialOrigin()
"""The operator of the machine has full control of it, so credentials they create give no additional access."""


def of_link(link: str, member: str, made_by: str | None, *, tainted: bool) -> CredentialOrigin:
    """The origin of a credential that starts with a link. A link without a creator was requested by the member and sent
    by mail.
    """
    return CredentialOrigin(link, tainted or made_by not in {None, member})


def of_invitation(invitation: str, invited_by: str | None, *, tainted: bool) -> CredentialOrigin:
    """The origin of a credential that starts with an invitation. Somebody else requested it, unless the
    operator did.
    """
    return CredentialOrigin(invitation, tainted or invited_by is not None)
