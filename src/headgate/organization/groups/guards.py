"""Guard for creating groups."""

from dataclasses import dataclass
from typing import Any

from headgate.kit.errors import Denied
from headgate.platform.http.guards import OnOrganization
from headgate.platform.unit_of_work.call import Call


@dataclass(frozen=True, slots=True)
class CreatesGroups(OnOrganization):
    """Callers who may create groups. On the Starter plan nobody may, and the refusal says so."""

    action: str = "create_group"

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Accept the call, or raise a refusal that names what is missing."""
        try:
            OnOrganization.check(self, call, parameters)
        except Denied as problem:
            if call.facts.organization().plan != "starter":
                raise
            detail = "The Starter plan has no custom groups; an owner can change the plan to Growth or Custom"
            raise Denied(detail, **problem.more) from None
