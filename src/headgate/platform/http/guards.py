"""Guards: the authorization of a route before its function runs. Each route declares one."""

from dataclasses import dataclass
from typing import Any, Protocol

from headgate.kit.errors import Denied, NotSignedIn
from headgate.kit.ids import kind_of
from headgate.platform.unit_of_work.call import WORKER, Call


class Guard(Protocol):
    """Declared on a route and checked in the route's transaction."""

    @property
    def public(self) -> bool:
        """Whether callers need not be signed in."""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Accept the call, or raise a Problem."""


@dataclass(frozen=True, slots=True)
class Public:
    """Anyone, signed in or not."""

    why: str
    public: bool = True

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """No check."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Any member. `then` describes how the function narrows the result."""

    then: str
    operator_too: bool = False
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Any signed-in member passes; the operator is not a member."""
        if call.caller.operator and not self.operator_too:
            raise Denied("This endpoint requires a member; set HEADGATE_TOKEN to a member's token")


@dataclass(frozen=True, slots=True)
class OwnCredentials:
    """Any member, for their own tokens, password and sessions; not with a narrowed token."""

    then: str
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """Refuse narrowed tokens."""
        SignedIn(self.then).check(call, parameters)
        if not call.caller.narrowing.permits_action("manage_tokens", call.now):
            raise Denied(
                "A restricted token may not create or change tokens, passwords or sessions; use a token without "
                "restrictions"
            )


@dataclass(frozen=True, slots=True)
class ByWorker:
    """A worker of this installation, by the secret derived from the key file; no member, and not the operator."""

    then: str
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        """The secret was checked when the caller was identified."""
        if call.caller is not WORKER:
            raise NotSignedIn


@dataclass(frozen=True, slots=True)
class OnOrganization:
    """Callers with an action on the organization."""

    action: str
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        call.require(self.action, "organization", "organization")


@dataclass(frozen=True, slots=True)
class MemberOnOrganization(OnOrganization):
    """Members with an action on the organization; not the machine operator."""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        SignedIn(self.action).check(call, parameters)
        OnOrganization.check(self, call, parameters)


@dataclass(frozen=True, slots=True)
class OnResource:
    """Callers with an action on the resource in a path parameter."""

    action: str
    parameter: str = "resource_id"
    public: bool = False

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        resource = parameters[self.parameter]
        call.require(self.action, kind_of(resource) or "", resource)


@dataclass(frozen=True, slots=True)
class MemberOn(OnResource):
    """Members with an action on the resource in a path parameter; not the machine operator."""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        SignedIn(self.action).check(call, parameters)
        OnResource.check(self, call, parameters)


@dataclass(frozen=True, slots=True)
class OnPipeline(MemberOn):
    """Members with an action on the pipeline in a path parameter; for a data task, the corresponding action of data
    tasks.
    """

    on_task: str = ""

    def check(self, call: Call, parameters: dict[str, Any]) -> None:
        resource = call.facts.thing(parameters[self.parameter])
        is_task = resource is not None and resource.kind == "task"
        MemberOn(self.on_task if is_task else self.action, self.parameter).check(call, parameters)
