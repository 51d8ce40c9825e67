"""What notifications say: one sentence each, of names that its reader may know and of nothing else."""

from dataclasses import dataclass, field
from typing import Any

from headgate.access.actions import DESCRIPTIONS

SENTENCES = {
    "joined": "{member} joined",
    "removed": "{member} was removed{by}",
    "role_changed": "{member} got another role{by}",
    "request.made": "{member} asks for {action} on {resource}",
    "request.approved": "Your request for {action} on {resource} was approved{by}",
    "request.declined": "Your request for {action} on {resource} was declined{by}",
    "request.withdrawn": "{member} withdrew the request for {action} on {resource}",
    "run.failed": "A run of {resource} failed",
    "run.blocked": "A run of {resource} was blocked, and its trigger is paused",
}
"""By event. Reasons and comments are left out: they may name what a reader cannot see, so one looks them up there."""


@dataclass(frozen=True, slots=True)
class About:
    """The names in a sentence; None for what is not there, or is not for its reader."""

    member: str | None = None
    actor: str | None = None
    kind: str | None = None
    resource: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def sentence(event: str, about: About) -> str:
    """What happened, in a sentence."""
    action = about.facts.get("action")
    by = f" by {about.actor}" if about.actor else ""
    pattern = SENTENCES.get(event)
    if pattern is None:
        words = event.replace("_", " ").replace(".", " ").capitalize()
        return f"{words}: {_thing(about)}{by}" if about.resource else f"{words}{by}"
    return pattern.format(
        member=about.member or "Someone",
        by=by,
        action=action.replace("_", " ") if isinstance(action, str) and action in DESCRIPTIONS else "access",
        resource=_thing(about),
    )


def _thing(about: About) -> str:
    if about.kind is None and about.resource is None:
        return "the organization"
    kind = (about.kind or "resource").replace("_", " ")
    return f"the {kind} {about.resource}" if about.resource else f"a {kind}"
