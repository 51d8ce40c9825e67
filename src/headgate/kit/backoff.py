"""Exponential backoff with full jitter."""

import random
import time
from collections.abc import Iterator


def full_jitter(attempt: int, first: float, longest: float) -> float:
    """The pause after this attempt, counted from 0: random, up to a bound that doubles."""
    # Two to the power of a large number is no float.
    return random.random() * min(first * 2.0 ** min(attempt, 60), longest)  # noqa: S311 - spreads those who met


def attempts(first: float, longest: float, total: float) -> Iterator[int]:
    """Count attempts from 0 with a pause between them, until the next one would start after `total` seconds."""
    give_up, attempt = time.monotonic() + total, 0
    while True:
        yield attempt
        pause = full_jitter(attempt, first, longest)
        if time.monotonic() + pause > give_up:
            return
        time.sleep(pause)
        attempt += 1
