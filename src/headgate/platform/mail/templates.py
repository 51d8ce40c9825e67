"""Mail templates in plain text; each user-provided value is on its own line and cannot forge a header."""

from headgate.settings.settings import Settings


def link_address(settings: Settings, secret: str) -> str:
    """The URL of a link. The secret is in the fragment, which browsers do not send: no server, log or mail scanner gets
    it and can use it.
    """
    return f"{own_address(settings)}/link#{secret}"


def own_address(settings: Settings) -> str:
    """The address of this installation from the settings, never from a request."""
    if settings.server.public_url:
        return settings.server.public_url.rstrip("/")
    host = settings.server.host
    return f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{settings.server.port}"  # noqa: S104


def _days(days: float) -> str:
    return f"{days:g} day{'' if days == 1 else 's'}"


def invitation(settings: Settings, inviter: str, organization: str, secret: str) -> tuple[str, str]:
    """Subject and body of an invitation."""
    return (
        f"You are invited to {one_line(organization)} on Headgate",
        f"{inviter} invites you to {organization}.\n\nOpen this link to join:\n\n  "
        f"{link_address(settings, secret)}\n\nIt works once, within {_days(settings.sign_in.invitation_days)}. If "
        "you did not expect this, ignore it.\n",
    )


def sign_in(settings: Settings, secret: str) -> tuple[str, str]:
    """Subject and body of a sign-in link."""
    return (
        "Your sign-in link",
        f"Open this link to sign in:\n\n  {link_address(settings, secret)}\n\nIt works once, within "
        f"{settings.sign_in.link_minutes:g} minutes. If you did not request it, ignore it.\n",
    )


def password(settings: Settings, secret: str) -> tuple[str, str]:
    """Subject and body of a link to choose a password."""
    return (
        "Choose a new password",
        "An admin has reset your password. Open this link to choose a new one:\n\n  "
        f"{link_address(settings, secret)}\n\nIt works once, within {settings.sign_in.link_minutes:g} minutes.\n",
    )


def own_password(settings: Settings, secret: str) -> tuple[str, str]:
    """Subject and body of a link to choose a password, for a member who asked for it."""
    return (
        "Choose a new password",
        f"Open this link to choose a new password for Headgate:\n\n  {link_address(settings, secret)}\n\nIt works "
        f"once, within {settings.sign_in.link_minutes:g} minutes. If you did not request it, ignore it.\n",
    )


def new_owner(settings: Settings, organization: str, ended: str, *, password: bool) -> tuple[str, str]:
    """Subject and body for a member who became an owner; `ended` lists what was revoked."""
    text = f"You are now an owner of {one_line(organization)} on Headgate.\n"
    if ended:
        text += (
            f"\nFor your security, {ended} ended, because a link, invitation or password reset that another person "
            "requested was used to create them. Sign in again, and create new tokens where you need them.\n"
        )
    if password:
        text += (
            "\nYour password was deleted for the same reason. Request a link to choose a new one:\n\n  headgate "
            f"login --forgot-password --server {own_address(settings)}\n"
        )
    return f"You are now an owner of {one_line(organization)}", text


def one_line(text: str) -> str:
    """Text safe for a header: without line breaks and without RFC 2047 encoded words, which can hide some."""
    plain = "".join(c if c.isprintable() else " " for c in text).replace("=?", "= ?")
    return " ".join(plain.split())[:150]
