"""Errors that a person can act on: each is a status, a code and a sentence."""

import errno
from typing import Any, ClassVar


class Problem(Exception):
    """An answer that is not the one asked for. Rendered as application/problem+json, or on the terminal."""

    status: int = 500
    code: str = "internal"
    title: ClassVar[str] = "Something went wrong on our side"

    def __init__(self, detail: str | None = None, **more: Any) -> None:
        self.detail = detail or self.title
        self.more = more
        super().__init__(self.detail)


class BadRequest(Problem):
    """The request cannot be understood."""

    status, code, title = 400, "bad_request", "The request cannot be understood"


class NotSignedIn(Problem):
    """The caller is not known."""

    status, code, title = 401, "not_signed_in", "Send a valid token as `Authorization: Bearer …`"


class WrongPassword(Problem):
    """The account or the password is wrong; which of the two is not said."""

    status, code, title = 401, "wrong_password", "Address or password is wrong; a sign-in link works too"


class PasswordEnded(Problem):
    """The password is right, but it ended when its member became an owner, because somebody else may know it."""

    status, code, title = 403, "password_ended", "This password has ended; choose a new one"


class CrossSite(Problem):
    """A browser sent this for another site."""

    status, code, title = 403, "cross_site", "This request came from another site; open Headgate itself, or use a token"


class Denied(Problem):
    """The caller may see it, but not do this; the answer says what is missing and who could grant it."""

    status, code, title = 403, "denied", "You may not do this"


class NotFound(Problem):
    """It does not exist, or the caller may not see it: the two look the same."""

    status, code, title = 404, "not_found", "There is nothing here that you may see"


class WrongMethod(Problem):
    """The place exists, the method does not."""

    status, code, title = 405, "wrong_method", "This place does not take that method"


class TooSlow(Problem):
    """The body did not come in time."""

    status, code, title = 408, "too_slow", "The body of the request came too slowly; send it again"


class Conflict(Problem):
    """It cannot be done in the present state."""

    status, code, title = 409, "conflict", "This cannot be done in the present state"


class LinkSpent(Problem):
    """A link that cannot be used: unknown, used, expired or replaced; which of them is not said."""

    status, code, title = 410, "link_spent", "This link was used, replaced or has expired; ask for a new one"


class Expired(Problem):
    """It was there, and was deleted when its time was over."""

    status, code, title = 410, "expired", "This was deleted when its time was over"


class VersionConflict(Problem):
    """It is no longer what the caller took it for."""

    status, code, title = 412, "stale", "It has changed since you looked; look again"


class TooLarge(Problem):
    """The request is larger than we take."""

    status, code, title = 413, "too_large", "The request is too large"


class NoSuchRange(Problem):
    """None of the bytes that were asked for exist."""

    status, code, title = 416, "no_such_range", "The file has no such bytes"

    def __init__(self, size: int) -> None:
        super().__init__(f"The file has {size} bytes; ask for some of them, or for all by leaving `Range` out")
        self.headers = {"Content-Range": f"bytes */{size}"}


class Invalid(Problem):
    """A value is not usable; `errors` names each place and what to do."""

    status, code, title = 422, "invalid", "Some values cannot be used"


class TooManyAttempts(Problem):
    """Too many attempts of late."""

    status, code, title = 429, "too_many", "Too many attempts; wait a while"

    def __init__(self, detail: str | None = None, seconds: int = 60, **more: Any) -> None:
        super().__init__(detail, **more)
        self.headers = {"Retry-After": str(seconds)}


class Unavailable(Problem):
    """It cannot be done right now."""

    status, code, title = 503, "unavailable", "Not right now; try again in a moment"


class DiskFull(Problem):
    """Nothing was written, since a disk of this installation is full: the database's, or the warehouse's."""

    status, code, title = (
        507,
        "disk_full",
        "A disk of this installation is full; an operator makes room, then try again",
    )


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of the operating system means that a disk is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
