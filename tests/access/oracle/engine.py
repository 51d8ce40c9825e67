"""The oracle: every question that a world can ask, answered for one world."""

from collections.abc import Sequence

from .names import fold
from .organization import member_right, organization_right
from .own import OWN, own_right, request_right
from .rights import right
from .saving import add_right, create_right, hand_over_right, save_right
from .starts import fire_right, start_right, start_with_secrets_right
from .tasks import is_task
from .tokens import Asked, token_allows
from .vocabulary import ACTIONS
from .world import Member, Resource, World

Change = dict[str, object]


class Oracle:
    """Answers decide, list and who_can for one world."""

    def __init__(self, world: Change) -> None:
        self.world = World(world if isinstance(world, dict) else {})

    def decide(
        self,
        member: str | None,
        action: str,
        resource: str | None = None,
        kind: str | None = None,
        with_: Change | None = None,
        token: Change | None = None,
    ) -> bool:
        """Tell whether the action is allowed; whatever goes wrong denies (section 2)."""
        try:
            return self.judge(member, action, resource, kind, with_, token)
        except Exception:
            return False

    def judge(
        self,
        member: str | None,
        action: str,
        resource: str | None = None,
        kind: str | None = None,
        with_: Change | None = None,
        token: Change | None = None,
    ) -> bool:
        """Answer as decide does, without its net for exceptions."""
        for text in (member, resource, kind):
            if text is not None and not isinstance(text, str):
                return False
        if not isinstance(action, str) or (with_ is not None and not isinstance(with_, dict)):
            return False
        if token is not None and not token_allows(self.world, token, _asked(action, resource, kind, with_)):
            return False
        if action == "fire":
            return member is None and token is None and self._fire(resource)
        caller = self.world.member(None if member is None else fold(member))
        if caller is None:
            return False
        if resource is None and kind in OWN:
            return own_right(self.world, caller, action, kind, with_ or {})
        if resource is None and kind == "access_request":
            return request_right(self.world, caller, action, with_ or {})
        if action in ("create", "add"):
            return resource is None and self._make(caller, action, kind, with_)
        return self._act(caller, action, resource, kind, with_)

    def list(self, member: str, action: str, kind: str) -> set[str]:
        """Return the names of the resources of a kind for which decide is true."""
        return {title for reference, title in self._references(kind) if self.decide(member, action, reference)}

    def who_can(self, action: str, resource: str) -> set[str]:
        """Return the names of the members for whom decide is true."""
        members = self.world.members.values()
        return {member.title for member in members if self.decide(member.title, action, resource)}

    def actions(self, kind: str) -> tuple[str, ...]:
        """Return the actions that can be asked of an existing resource of a kind."""
        return ACTIONS.get(kind, ())

    def _references(self, kind: str) -> Sequence[tuple[str, str]]:
        """Return the reference and the name of everything of a kind; a task is a pipeline too."""
        if kind == "member":
            return [(f"member:{member.title}", member.title) for member in self.world.members.values()]
        found = self.world.resources.values()
        if kind == "task":
            return [(f"pipeline:{task.title}", task.title) for task in found if is_task(task)]
        return [(f"{kind}:{one.title}", one.title) for one in found if one.kind == kind]

    def _resource(self, reference: str | None) -> Resource | None:
        """Return the resource that a reference "kind:name" names."""
        if reference is None or ":" not in reference:
            return None
        kind, name = reference.split(":", 1)
        return self.world.find(kind, fold(name))

    def _fire(self, reference: str | None) -> bool:
        """Answer fire, which has no caller."""
        trigger = self._resource(reference)
        if trigger is None or "fire" not in ACTIONS.get(trigger.kind, ()):
            return False
        return fire_right(self.world, trigger)

    def _make(self, caller: Member, action: str, kind: str | None, place: Change | None) -> bool:
        """Answer create or add, whose place is in `with`."""
        if kind is None:
            return False
        if action == "create":
            return create_right(self.world, caller, kind, place or {})
        return add_right(self.world, caller, kind, place or {})

    def _act(self, caller: Member, action: str, reference: str | None, kind: str | None, change: Change | None) -> bool:
        """Answer an action on something that exists."""
        if reference == "organization":
            return organization_right(self.world, caller, action)
        if reference is not None and reference.startswith("member:"):
            target = self.world.member(fold(reference.removeprefix("member:")))
            return target is not None and member_right(self.world, caller, action, target, change)
        found = self._resource(reference)
        if found is None:
            return False
        own_kind = "task" if is_task(found) else found.kind
        if kind is not None and kind not in (found.kind, own_kind):
            return False
        if action not in ACTIONS.get(own_kind, ()):
            return False  # not an action of this kind, not for admins either (section 2)
        if action == "start":
            return start_right(self.world, caller, found)
        if action == "start_with_secrets":
            return start_with_secrets_right(self.world, caller, found)
        if change is not None and action in ("edit", "update"):
            return save_right(self.world, caller, action, found, change)
        if change is not None and action in ("change_owner", "change_space"):
            return hand_over_right(self.world, caller, action, found, change)
        return right(self.world, caller, action, found)


def _asked(action: str, resource: str | None, kind: str | None, with_: Change | None) -> Asked:
    """Return what a token is asked to do."""
    if resource is None:
        return Asked(action, kind, None, with_ or {})
    own_kind, _, name = resource.partition(":")
    return Asked(action, own_kind, fold(name), with_ or {})
