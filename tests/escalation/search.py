"""Tries random sequences of acts, judges after each, and shortens one that ends in an escalation.

`MINUTES=5 python -m tests.escalation.search` searches for so long; `SEED=…` tries one organization again.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from argon2 import PasswordHasher

from headgate.kit.clock import now
from headgate.organization.sessions import passwords
from headgate.organization.tokens import service as tokens
from headgate.platform.http import logs
from headgate.settings.log import LogSettings
from tests.escalation.acts import AS_NOBODY, HONESTLY, Act, Play, do, drawn
from tests.escalation.knowledge import ADMIN, OWNER, RANKS, Entitled, Knowledge
from tests.escalation.organization import OTHERS, Organization, Rights

ACTS = 40
"""How many acts there are in one organization."""

GRANTING = frozenset(
    {"grant", "grant_manager", "configure_sharing", "manage_owners", "change_owner", "manage_members", "change_space"}
)
"""Actions by which somebody gives rights on a resource, or on what is in it."""


@dataclass(frozen=True, slots=True)
class Escalation:
    """What a coalition got that nobody gave, and how."""

    seed: int
    what: str
    acts: tuple[Act, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {number}. {who}: {name} {whom} {what}" for number, (name, who, whom, what) in self.told)
        return f"seed {self.seed}: {self.what}\n{steps}"

    @property
    def told(self) -> Iterable[tuple[int, Act]]:
        return enumerate(self.acts, 1)


@contextmanager
def cheap_passwords() -> Iterator[None]:
    """Passwords are hashed at little cost for a while, so that more sequences are tried."""
    before = passwords._hasher
    passwords._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    try:
        yield
    finally:
        passwords._hasher = before


class Search:
    """Organizations, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.organization = Organization(folder)
        self.done = 0

    def begin(self, seed: int) -> Play:
        """The organization of a seed, before anything happens in it."""
        one = self.organization
        one.begin(seed)
        rng = Random(seed)
        coalition = set(rng.sample(OTHERS, rng.choice((1, 2, 2, 3))))
        play = Play(one, coalition, Knowledge(one.database, one.settings.sign_in, one.ids), Entitled())
        play.own = {name: one.token(name) for name in one.ids}
        for name in sorted(coalition):
            play.learn("token", name, play.own[name])
        roles = one.roles()
        play.entitled.rank = max(RANKS[roles[name]] for name in coalition)
        play.entitled.add(one.rights(), {one.ids[name] for name in coalition})
        return play

    def run(self, seed: int, acts: Iterable[Act]) -> Escalation | None:
        """Do these acts in the organization of a seed; the escalation that one of them ends in."""
        following = iter(acts)
        return self._follow(seed, lambda _: next(following, None))

    def random(self, seed: int, acts: int = ACTS) -> Escalation | None:
        """Do acts at random in the organization of a seed; the escalation that one of them ends in."""
        rng, numbers = Random(seed), iter(range(acts))
        return self._follow(seed, lambda play: drawn(rng, play) if next(numbers, None) is not None else None)

    def _follow(self, seed: int, choose: Callable[[Play], Act | None]) -> Escalation | None:
        play, tried = self.begin(seed), list[Act]()
        while (act := choose(play)) is not None:
            before = play.organization.rights() if play.entitled.rank < ADMIN else {}
            known = set(play.organization.ids.values())
            if not do(play, act):
                continue
            self.done += 1
            tried.append(act)
            problem = judge(play, act, before, known)
            if problem:
                return Escalation(seed, problem, tuple(tried))
        return None

    def shortened(self, found: Escalation) -> Escalation:
        """The same escalation with no act in it that could be left out."""
        for number in reversed(range(len(found.acts))):
            shorter = self.run(found.seed, (*found.acts[:number], *found.acts[number + 1 :]))
            if shorter is not None:
                return self.shortened(shorter)
        return found


def judge(play: Play, act: Act, before: Rights, known: set[str]) -> str | None:
    """Say what the coalition got by an act that it is not entitled to; else note what it is entitled to from now on."""
    roles, ids = play.organization.roles(), play.organization.ids
    is_honest, members = act[0] in HONESTLY, {ids[name] for name in play.coalition}
    rank = max([RANKS[roles[name]] for name in play.coalition if name in roles], default=0)
    if not is_honest and act[0] not in AS_NOBODY and rank > play.entitled.rank:
        return f"{act[1]} made somebody of the coalition more than any of it was"
    lost = _lost(play, roles)
    if lost:
        return lost
    rights: Rights = {}
    if play.entitled.rank < ADMIN:
        rights = play.organization.rights()
        gained = None if is_honest else _taken(play, before, rights, known)
        if gained:
            return gained
        play.entitled.add(rights, members)
    play.entitled.rank = max(play.entitled.rank, rank)
    return _acts_for_others(play, roles, rights)


def _acts_for_others(play: Play, roles: dict[str, str], rights: Rights) -> str | None:
    """What the coalition can do through an account that is not its own."""
    for secret in play.knows.usable():
        name = secret.account
        if name in play.coalition or name not in roles:
            continue
        if roles[name] == "owner" and play.entitled.rank < OWNER:
            return f"the coalition knows a {secret.kind} of {name}, who is an owner now"
        if play.entitled.rank < ADMIN:
            more = play.entitled.lacks(rights, play.organization.ids[name])
            if more:
                return f"the coalition knows a {secret.kind} of {name}, who has {more[0]}"
    return None


def _taken(play: Play, before: Rights, after: Rights, known: set[str]) -> str | None:
    """What a member of the coalition got by its own act where none of it could give anything."""
    members = {play.organization.ids[name] for name in play.coalition}
    could_give = any(actions & GRANTING for (member, _), actions in before.items() if member in members)
    existed = {resource for _, resource in before}
    for (member, resource), actions in sorted(after.items()):
        more = actions - before.get((member, resource), frozenset()) - play.entitled.rights.get(resource, set())
        if member not in members & known or not more or resource not in existed:
            continue
        if resource.startswith(("organization", "member")) or not could_give:
            return f"the coalition took {sorted(more)[0]} on {resource}"
    return None


def _lost(play: Play, roles: dict[str, str]) -> str | None:
    """A token that an honest member made alone, and that ended though they are still there."""
    with play.organization.database.read() as connection:
        for name, secret in play.kept.items():
            if name in roles and tokens.identify(connection, secret, now()) is None:
                return f"{name} lost a token that nobody else may know of"
    return None


def main() -> int:
    """Search for MINUTES=…, or one SEED=…; 1 if something was found."""
    ends = time.monotonic() + float(os.environ.get("MINUTES", "5")) * 60
    chosen = os.environ.get("SEED")
    seed = int(chosen) if chosen else time.time_ns() % 10**9
    tried = 0
    logs.configure(LogSettings(level="error"))
    with tempfile.TemporaryDirectory() as folder, cheap_passwords():
        search = Search(Path(folder))
        while True:
            found = search.random(seed)
            tried += 1
            if found:
                print(search.shortened(found), flush=True)
                return 1
            if chosen or time.monotonic() > ends:
                break
            seed += 1
    print(f"{tried} organizations, {search.done} acts that were allowed: no escalation; the last seed was {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
