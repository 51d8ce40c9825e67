"""Errors for users: a status, a code and a message."""

import errno
from typing import Any, ClassVar


class Problem(Exception):
    """An error response, rendered as application/problem+json or on the terminal."""

    status: int = 500
    code: str = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str | None = None, **more: Any) -> None:
        self.detail = detail or self.title
        self.more = more
        super().__init__(self.detail)


class BadRequest(Problem):
    """The request is invalid."""

    status, code, title = 400, "bad_request", "The request is invalid"


class NotSignedIn(Problem):
    """The caller is not authenticated."""

    status, code, title = 401, "not_signed_in", "Send a valid token as `Authorization: Bearer …`"


class WrongPassword(Problem):
    """The account or the password is wrong; which of the two is not said."""

    status, code, title = 401, "wrong_password", "The address or password is wrong; you can also sign in with a link"


class PasswordEnded(Problem):
    """The password is right, but it ended when its member became an owner, because somebody else may know it."""

    status, code, title = 403, "password_ended", "This password was deleted; choose a new one"


class CrossSite(Problem):
    """A cross-site request of a browser (CSRF)."""

    status, code, title = (
        403,
        "cross_site",
        "The request came from another site (CSRF protection); use Headgate's own pages, or a token",
    )


class Denied(Problem):
    """The caller may see it, but not do this; the answer says what is missing and who could grant it."""

    status, code, title = 403, "denied", "You may not do this"


class NotFound(Problem):
    """It does not exist, or the caller may not see it: the two look the same."""

    status, code, title = 404, "not_found", "It does not exist, or you may not see it"


class WrongMethod(Problem):
    """The path does not support the method."""

    status, code, title = 405, "wrong_method", "This path does not support the method"


class TooSlow(Problem):
    """The request body timed out."""

    status, code, title = 408, "too_slow", "The body of the request arrived too slowly; send it again"


class Conflict(Problem):
    """The request conflicts with the current state."""

    status, code, title = 409, "conflict", "This conflicts with the current state"


class LinkSpent(Problem):
    """A link that cannot be used: unknown, used, expired or replaced; which of them is not said."""

    status, code, title = 410, "link_spent", "This link was used, was replaced or has expired; request a new one"


class Expired(Problem):
    """It existed, and was deleted after its retention time."""

    status, code, title = 410, "expired", "It was deleted because its retention time is over"


class VersionConflict(Problem):
    """It was changed concurrently."""

    status, code, title = 412, "stale", "It was changed concurrently; reload it"


class TooLarge(Problem):
    """The request body is too large."""

    status, code, title = 413, "too_large", "The request is too large"


class NoSuchRange(Problem):
    """The requested range is not satisfiable."""

    status, code, title = 416, "no_such_range", "The requested range is outside the file"

    def __init__(self, size: int) -> None:
        super().__init__(f"The file has {size} bytes; request a range inside it, or omit `Range`")
        self.headers = {"Content-Range": f"bytes */{size}"}


class Invalid(Problem):
    """A value is invalid; `errors` lists each field and what to do."""

    status, code, title = 422, "invalid", "Some values are invalid"


class TooManyAttempts(Problem):
    """Rate limit exceeded."""

    status, code, title = 429, "too_many", "Too many attempts; try again later"

    def __init__(self, detail: str | None = None, seconds: int = 60, **more: Any) -> None:
        super().__init__(detail, **more)
        self.headers = {"Retry-After": str(seconds)}


class Unavailable(Problem):
    """Temporarily unavailable."""

    status, code, title = 503, "unavailable", "Temporarily unavailable; try again"


class DiskFull(Problem):
    """Nothing was written, because a disk of the database or of the warehouse is full."""

    status, code, title = (
        507,
        "disk_full",
        "A disk of this installation is full; the operator must free space before you try again",
    )


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of the operating system means that a disk is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
