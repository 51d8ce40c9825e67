"""The credentials file of `headgate login`, readable by the current user only."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.kit.key_file import write_atomically


@dataclass(frozen=True, slots=True)
class Login:
    """A server address and the token of a member on that server."""

    server: str
    token: str
    token_id: str
    member: str


def _place() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "headgate" / "login.json"


def save(login: Login) -> Path:
    """Store a login, replacing any previous one, and return the path of the file."""
    place = _place()
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(place, json.dumps(asdict(login), indent=1))
    return place


def stored() -> Login | None:
    """The stored login; None if there is none or the file is unreadable."""
    try:
        document = json.loads(_place().read_text())
        return Login(**{name: str(document[name]) for name in ("server", "token", "token_id", "member")})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget() -> None:
    """Delete the stored login."""
    _place().unlink(missing_ok=True)
