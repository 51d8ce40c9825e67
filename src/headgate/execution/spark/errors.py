"""Errors of statements. Each message is safe to show to a member, except the detail of SparkUnavailable."""


class SparkUnavailable(Exception):
    """Spark is not running, or died during a statement, which may be retried. The detail is for the operator."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.out_of_memory = False
        """Whether it ended because it ran out of memory."""


class SqlFailed(Exception):
    """Spark failed to run a statement: its error code and message, without internals."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class StatementRefused(Exception):
    """The guard rejects a statement; the message says why, and what to use instead."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


CANCELED = "OPERATION_CANCELED"
TIME_LIMIT = "TIME_LIMIT"


def too_long(seconds: float | None) -> SqlFailed:
    """The failure of a statement that exceeded its timeout."""
    rounded = f"{round(seconds or 0, 1):g}"
    what = f"{rounded} second{'' if rounded == '1' else 's'}"
    return SqlFailed(TIME_LIMIT, f"The statement exceeded its timeout of {what}")
