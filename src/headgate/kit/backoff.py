"""Exponential backoff with full jitter: those who collided once do not collide again."""

import random
import time
from collections.abc import Iterator


def full_jitter(attempt: int, first: float, longest: float) -> float:
    """How long to pause after this attempt, counted from 0: any time up to a bound that doubles."""
    # Two to the power of a large number is no float.
    return random.random() * min(first * 2.0 ** min(attempt, 60), longest)  # noqa: S311 - spreads those who met


def attempts(first: float, longest: float, total: float) -> Iterator[int]:
    """Count attempts from 0, with a pause between any two, until the next one would begin after `total` seconds."""
    give_up, attempt = time.monotonic() + total, 0
    while True:
        yield attempt
        pause = full_jitter(attempt, first, longest)
        if time.monotonic() + pause > give_up:
            return
        time.sleep(pause)
        attempt += 1
