"""Mail addresses of members."""

from headgate.kit.errors import Invalid
from headgate.kit.names import BadName, check_email


def usable(email: str, place: str = "email") -> str:
    """The address as stored; raises Invalid."""
    try:
        return check_email(email)
    except BadName as error:
        raise Invalid(f"{place}: {error}") from None
