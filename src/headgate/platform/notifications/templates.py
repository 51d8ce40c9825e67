"""The texts of notifications: one sentence each, with only the names that its reader may know."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.access.actions import DESCRIPTIONS
from headgate.kit.ids import kind_of
from headgate.platform.mail.templates import own_address
from headgate.settings.settings import Settings

SENTENCES = {
    "joined": "{member} joined",
    "removed": "{member} was removed{by}",
    "role_changed": "The role of {member} was changed{by}",
    "request.made": "{member} requests {action} on {resource}",
    "request.approved": "Your request for {action} on {resource} was approved{by}",
    "request.declined": "Your request for {action} on {resource} was declined{by}",
    "request.withdrawn": "{member} withdrew the request for {action} on {resource}",
    "run.failed": "A run of {resource} failed",
    "run.blocked": "A run of {resource} was blocked",
    "trigger.blocked": "A run of {resource} was blocked, and its trigger is paused",
    "pipeline.deactivated": "Deactivated {resource} after too many failures",
}
"""By event. Reasons and comments are omitted, because they may name hidden items; readers look them up."""

REASONS = {
    "BLOCKED": "the member as whom it runs, or who started it, lacks access, or it was changed since",
    "CONNECTION": "its connection or destination is unusable",
    "DEFINITION": "its definition is invalid",
    "DISK_FULL": "a disk is full",
    "EXPECTATION_FAILED": "an expectation of its outputs failed",
    "FAULT": "an internal error of Headgate; see the server's log",
    "LOOP": "pipelines trigger each other in what looks like an endless loop",
    "TABLE_MOVED": "concurrent commits to its tables won each time",
    "TIMEOUT": "it exceeded its timeout",
    "UNREACHABLE": "a system that it reads or writes was unreachable",
    "WORKER_LOST": "its worker or Spark died, also during the retries",
    "WRONG_CREDENTIALS": "its credentials were rejected",
}
"""By error code, the reason that everyone who sees the run may know. The error itself may name tables or
contain rows.
"""
_CODE = re.compile(r"[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*")


@dataclass(frozen=True, slots=True)
class About:
    """The names in a sentence; None for those that are missing or hidden from the reader."""

    member: str | None = None
    actor: str | None = None
    kind: str | None = None
    resource: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def sentence(event: str, about: About) -> str:
    """The sentence for an event."""
    action = about.facts.get("action")
    by = f" by {about.actor}" if about.actor else ""
    if event == "run.blocked" and "trigger" in about.facts:
        event = "trigger.blocked"
    pattern = SENTENCES.get(event)
    if pattern is None:
        text = event.replace("_", " ").replace(".", " ").capitalize()
        return f"{text}: {_thing(about)}{by}" if about.resource else f"{text}{by}"
    return pattern.format(
        member=about.member or "Someone",
        by=by,
        action=action.replace("_", " ") if isinstance(action, str) and action in DESCRIPTIONS else "access",
        resource=_thing(about),
    )


def code_of(facts: Mapping[str, Any]) -> str | None:
    """The error code; None if its format is neither Headgate's nor Spark's."""
    code = facts.get("code")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def reason(event: str, facts: Mapping[str, Any]) -> str | None:
    """Why a run failed or was blocked, as far as everyone who may see the run may know; None for other notices."""
    if "run" not in facts:
        return None
    if event == "pipeline.deactivated":
        times = facts.get("failures")
        return "the run failed" if times == 1 else f"the run failed {times} times in a row"
    return REASONS.get(code_of(facts) or ("BLOCKED" if event == "run.blocked" else ""), "see its log")


def details(event: str, facts: Mapping[str, Any]) -> str:
    """Details of a run for a mail; empty for other notices."""
    why, code = reason(event, facts), code_of(facts)
    if why is None:
        return ""
    text = f"Reason: {why}{f' ({code})' if code else ''}.\n"
    return f"{text}Show it: headgate run show {facts['run']}\n\n"


def link(settings: Settings, facts: Mapping[str, Any]) -> str:
    """The link of a notice: to its run, if it is about one."""
    run = facts.get("run")
    at = f"api/runs/{run}" if isinstance(run, str) and kind_of(run) == "run" else ""
    return f"{own_address(settings)}/{at}"


def _thing(about: About) -> str:
    if about.kind is None and about.resource is None:
        return "the organization"
    kind = (about.kind or "resource").replace("_", " ")
    return f"the {kind} {about.resource}" if about.resource else f"a {kind}"
