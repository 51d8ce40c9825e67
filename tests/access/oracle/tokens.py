"""Narrowed API tokens, which only take away from what their creator has (section 4)."""

from dataclasses import dataclass
from datetime import datetime

from .levels import layer_of
from .names import fold, instant, optional_name
from .vocabulary import READ_ONLY_ACTIONS
from .world import World


@dataclass(frozen=True)
class Asked:
    """What a token is asked to do: a kind and name, or a kind and the place to create it in."""

    action: str
    kind: str | None
    name: str | None
    place: dict[str, object]


@dataclass(frozen=True)
class Narrowing:
    """A well-formed token: read-only or not, its list or None, its end or None."""

    read_only: bool
    only: frozenset[str] | None
    ends: datetime | None

    @property
    def is_narrow(self) -> bool:
        """Tell whether the token is narrowed in any of the three ways."""
        return self.read_only or self.only is not None or self.ends is not None


def read_token(token: object) -> Narrowing | None:
    """Return the narrowing of a token, or None when the token is malformed."""
    if not isinstance(token, dict) or not set(token) <= {"read_only", "only", "expires"}:
        return None
    read_only, only, expires = token.get("read_only"), token.get("only"), token.get("expires")
    if read_only not in (None, True, False):
        return None
    if only is not None and not (isinstance(only, list) and all(isinstance(name, str) for name in only)):
        return None
    try:
        ends = None if expires is None else instant(expires)
    except ValueError:
        return None
    listed = None if only is None else frozenset(fold(name) for name in only)
    return Narrowing(read_only is True, listed, ends)


def token_allows(world: World, token: object, asked: Asked) -> bool:
    """Tell whether a token's narrowing leaves an action open; the creator's right is judged beside it."""
    narrowing = read_token(token)
    if narrowing is None or world.has_ended(narrowing.ends):
        return False
    # it must not make a way in that is wider than itself
    if narrowing.is_narrow and (
        asked.action in ("reset_password", "make_magic_link") or asked.action.startswith("invite_")
    ):
        return False
    if narrowing.read_only and asked.action not in READ_ONLY_ACTIONS:
        return False
    return narrowing.only is None or _reachable(narrowing.only, asked)


def _reachable(only: frozenset[str], asked: Asked) -> bool:
    """Tell whether a token with a list reaches this."""
    if asked.kind == "layer" and asked.name is not None:
        if asked.name in only:
            return True
        # the layers around what is listed can be seen
        return asked.action == "see" and asked.name in {layer_of(name) for name in only}
    if asked.kind not in ("table", "volume"):
        return False
    if asked.name is not None:
        return asked.name in only or layer_of(asked.name) in only
    return optional_name(asked.place.get("layer")) in only  # creating in a layer is an action on the layer
