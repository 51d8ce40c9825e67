"""Settings of sign-in."""

from pydantic import Field

from headgate.settings.group import Group


class SignInSettings(Group):
    """Sessions, links and password attempts."""

    idle_hours: float = Field(12, gt=0, le=720, description="Idle timeout of a session, in hours.")
    session_days: float = Field(14, gt=0, le=365, description="Maximum lifetime of a session, in days.")
    link_minutes: float = Field(
        30, gt=0, le=1440, description="Lifetime of a sign-in link or password reset link, in minutes."
    )
    invitation_days: float = Field(7, gt=0, le=90, description="Lifetime of an invitation, in days.")
    failures_per_account: int = Field(
        10,
        ge=1,
        le=1000,
        description="Rate limit: failed password attempts for one account in 15 minutes. Above it, the account rejects "
        "passwords from browsers that have not signed in to it before.",
    )
    failures_per_address: int = Field(
        50,
        ge=1,
        le=100_000,
        description="Rate limit: failed password attempts from one network address in 15 minutes. Increase it if users "
        "share an address.",
    )
