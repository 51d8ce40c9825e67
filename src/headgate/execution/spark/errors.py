"""What can go wrong with a statement. Each message is safe to show to a member, but for EngineDown's detail."""


class SparkUnavailable(Exception):
    """Spark is not there, or went away under a statement, which may be tried again. The detail is the operator's."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.out_of_memory = False
        """Whether it went away because its memory was full."""


class SqlFailed(Exception):
    """Spark could not run a statement: its own code and sentence, without internals."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class StatementRefused(Exception):
    """The guard does not let a statement pass; says why, and what to use instead."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


CANCELED = "OPERATION_CANCELED"
TIME_LIMIT = "TIME_LIMIT"


def too_long(seconds: float | None) -> SqlFailed:
    """That a statement was stopped at its limit, told as people would say it."""
    rounded = f"{round(seconds or 0, 1):g}"
    what = f"{rounded} second{'' if rounded == '1' else 's'}"
    return SqlFailed(TIME_LIMIT, f"The statement ran longer than {what}, and was stopped")
