"""Guards: what a route asks of its caller before its function runs. Each route declares one."""

from dataclasses import dataclass
from typing import Any, Protocol

from headgate.kit.errors import Denied, NotSignedIn
from headgate.kit.ids import kind_of
from headgate.platform.unit_of_work.call import WORKER, Call


class Guard(Protocol):
    """Declared on a route; checked in the route's own transaction."""

    @property
    def public(self) -> bool:
        """Whether callers need not be signed in."""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Let the call pass, or raise a Problem."""


@dataclass(frozen=True, slots=True)
class Public:
    """Anyone, signed in or not."""

    why: str
    public: bool = True

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Nothing is asked."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Any member. `then` says how the function itself narrows what they get."""

    then: str
    operator_too: bool = False
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Being signed in is all; the operator is no member."""
        if call.caller.operator and not self.operator_too:
            raise Denied("This endpoint requires a member; set HEADGATE_TOKEN to a member's token")


@dataclass(frozen=True, slots=True)
class OwnCredentials:
    """Any member, for their own tokens, password and sessions; not by a narrowed token."""

    then: str
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Tokens, passwords and sessions are not for narrowed tokens."""
        SignedIn(self.then).check(call, parameters)
        if not call.caller.narrowing.permits_action("manage_tokens", call.now):
            raise Denied(
                "A restricted token may not create or change tokens, passwords or sessions; use a token without "
                "restrictions"
            )


@dataclass(frozen=True, slots=True)
class ByWorker:
    """A worker of this installation, by the secret that belongs to the key file; no member, and not the operator."""

    then: str
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """The secret was compared when the caller was found."""
        if call.caller is not WORKER:
            raise NotSignedIn


@dataclass(frozen=True, slots=True)
class OnOrganization:
    """Whoever has an action on the organization."""

    action: str
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        call.require(self.action, "organization", "organization")


@dataclass(frozen=True, slots=True)
class MemberOnOrganization(OnOrganization):
    """A member who has an action on the organization; the operator of the machine is none."""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        SignedIn(self.action).check(call, parameters)
        OnOrganization.check(self, call, parameters)


@dataclass(frozen=True, slots=True)
class OnResource:
    """Whoever has an action on the resource that a path parameter names."""

    action: str
    parameter: str = "resource_id"
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        resource = parameters[self.parameter]
        call.require(self.action, kind_of(resource) or "", resource)


@dataclass(frozen=True, slots=True)
class MemberOn(OnResource):
    """A member who has an action on the resource that a path parameter names; the operator of the machine is none."""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        SignedIn(self.action).check(call, parameters)
        OnResource.check(self, call, parameters)


@dataclass(frozen=True, slots=True)
class OnPipeline(MemberOn):
    """A member who has an action on the pipeline that a path parameter names; on a data task, the one it is called
    there.
    """

    on_task: str = ""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        resource = call.facts.thing(parameters[self.parameter])
        is_task = resource is not None and resource.kind == "task"
        MemberOn(self.on_task if is_task else self.action, self.parameter).check(call, parameters)
