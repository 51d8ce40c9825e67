"""What can go wrong with a call, in words for whoever typed the address."""


class OutgoingError(Exception):
    """A call that was not made, or whose answer cannot be used; the message is fit for a member."""


class CallRefused(OutgoingError):
    """We do not call this address, however often it is tried; the message says why and what would allow it."""


class Unreachable(OutgoingError):
    """The other side cannot be found, does not answer in time, or answers with something that is not HTTP."""


class TooLarge(OutgoingError):
    """The answer is larger than `outgoing.max_response_bytes`, as sent or once unpacked."""
