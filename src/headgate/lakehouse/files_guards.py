"""Who may touch the files of a volume."""

from dataclasses import dataclass
from typing import Any

from headgate.edge.call import Call
from headgate.edge.guards import OnResource, SignedIn


@dataclass(frozen=True, slots=True)
class MemberOn(OnResource):
    """A member who has an action on the volume that the path names; the operator of the machine has no files."""

    parameter: str = "volume_id"

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Let the call pass, or refuse."""
        SignedIn(self.action).check(call, parameters)
        OnResource.check(self, call, parameters)
