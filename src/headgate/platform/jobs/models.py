"""The states of a job."""

WAITING, RUNNING, CANCELLING = "queued", "running", "cancelling"
HELD = (RUNNING, CANCELLING)
ENDED = ("succeeded", "failed", "cancelled", "blocked", "skipped")
