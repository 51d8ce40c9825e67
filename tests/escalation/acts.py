"""What people do: each act is a name, who acts, about whom, and what; over HTTP, as browsers and programs do it.

The coalition acts through any account that it knows a secret of. Honest people act by tokens of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sqlalchemy import select

from headgate.kit.clock import now
from headgate.kit.names import email_key
from headgate.organization.invitations.models import invitation_table
from headgate.organization.sessions.service import make_link
from headgate.platform.authorization.provenance import BY_OPERATOR
from headgate.platform.directory.models import member_table
from tests.escalation.knowledge import RANKS, Entitled, Knowledge, Secret
from tests.escalation.organization import GROUP, OTHERS, OWNERS, TARGETS, Organization, address
from tests.support.people import secret_of

Act = tuple[str, str, str, str]
"""What is done, by whom, about whom, and what of it."""

PASSWORDS = tuple(f"{word} quiet herons fishing" for word in ("seven", "eight", "eleven"))
NEW = ("Nia", "Ned")
SEARCHED = (*OTHERS, *NEW)


@dataclass(slots=True)
class Play:
    """One organization, and what has happened in it."""

    organization: Organization
    coalition: set[str]
    knows: Knowledge
    entitled: Entitled
    own: dict[str, str] = field(default_factory=dict)
    """A token of each person who was there from the start."""
    kept: dict[str, str] = field(default_factory=dict)
    """Tokens that honest members made in sessions of their own, which nothing but a removal ends."""
    waiting: list[tuple[str, int]] = field(default_factory=list)
    """Invitations that the coalition knows, and the rank that an honest inviter gave with each; 0 for its own."""
    requests: list[str] = field(default_factory=list)

    def learn(self, kind: str, account: str, value: str, stored: str | None = None) -> None:
        self.knows.secrets.append(Secret(kind, account, value, stored))

    def by(self, who: str, what: str = "") -> dict[str, str] | None:
        """The headers by which the coalition acts as an account; None if it cannot."""
        kinds = ("session", "token") if what != "token" else ("token",)
        secret = self.knows.newest(who, *kinds)
        if secret is None:
            return None
        if secret.kind == "token":
            return {"Authorization": f"Bearer {secret.value}"}
        return {"Cookie": f"headgate={secret.value}"}

    def honest(self, who: str) -> dict[str, str] | None:
        """The headers by which an honest member acts."""
        if who in self.coalition or who not in self.own:
            return None
        return {"Authorization": f"Bearer {self.own[who]}"}

    def post(self, headers: dict[str, str], path: str, body: Any = None) -> Any:
        return self.organization.send("POST", path, body, **headers)

    def change(self, headers: dict[str, str], change: dict[str, Any]) -> bool:
        return bool(self.post(headers, "/api/access/changes", change).status_code == 200)

    def opened(self, account: str, answer: Any) -> bool:
        """Learn the session that an answer opened."""
        if answer.status_code != 200:
            return False
        cookie = answer.headers["set-cookie"].partition("headgate=")[2].partition(";")[0]
        self.learn("session", account, cookie)
        return True

    def learn_password(self, account: str, password: str) -> None:
        with self.organization.database.read() as connection:
            row = member_table.c
            member = self.organization.ids[account]
            stored = connection.execute(select(row.password).where(row.id == member)).scalar_one()
        self.learn("password", account, password, stored)


Doing = Callable[[Play, dict[str, str], str, str, str], bool]


# What a coalition does


def make_a_link(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    path = "magic-link" if what == "sign_in" else "password-reset"
    answer = play.post(by, f"/api/members/{play.organization.ids[whom]}/{path}")
    if answer.status_code != 200:
        return False
    play.learn(what, whom, secret_of(answer.json()["link"]))
    return True


def mint(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    limits: dict[str, Any] = {
        "full": {},
        "read-only": {"read_only": True},
        "ending": {"expires": "2031-01-01T00:00:00Z"},
    }
    answer = play.post(by, "/api/tokens", {"name": "kept", **limits.get(what, {})})
    if answer.status_code != 200:
        return False
    play.learn("token", who, answer.json()["token"])
    return True


def set_password(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    known = play.knows.newest(who, "password")
    body = {"current": known.value if known else None, "password": what}
    if play.post(by, "/api/me/password", body).status_code != 200:
        return False
    play.learn_password(who, what)
    return True


def integrate(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    answer = play.post(by, "/api/integrations", {"name": f"charts {len(play.knows.secrets)}", "tables": ["raw.orders"]})
    if answer.status_code != 200:
        return False
    play.learn("token", who, answer.json()["secret"])
    return True


def state(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    answer = play.post(by, "/api/sql/statements", {"sql": "SELECT 1"})
    if answer.status_code >= 300:
        return False
    play.learn("statement", who, answer.json()["id"])
    return True


def invite(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    answer = play.post(by, "/api/invitations", {"email": address(whom), "role": what})
    if answer.status_code != 200:
        return False
    play.waiting.append((secret_of(answer.json()["link"]), 0))
    return True


def ask(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    body = {"action": "see", "resource": what, "reason": "I need it"}
    answer = play.post(by, "/api/access/requests", body)
    if answer.status_code != 200:
        return False
    play.requests.append(answer.json()["id"])
    return True


def answer_request(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    """Approve the newest request by the first proposal."""
    for identifier in reversed(play.requests):
        found = play.organization.send("GET", f"/api/access/requests/{identifier}", **by)
        proposals = found.json().get("proposals") or [] if found.status_code == 200 else []
        if proposals:
            body = {"change": proposals[0]["change"]}
            return bool(play.post(by, f"/api/access/requests/{identifier}/approve", body).status_code == 200)
    return False


def change(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    """A change of access in favour of somebody; `what` is which, and of what."""
    sort, _, of = what.partition(" ")
    changes: dict[str, dict[str, Any]] = {
        "set_role": {"member": whom, "role": of},
        "grant": {"to": whom, "resource": of.partition(" ")[0], "level": of.partition(" ")[2]},
        "share": {"resource": of, "for_use": True, "for_maintenance": True},
        "add_owner": {
            "resource": of,
            "member": whom,
            "ownership": "technical" if of.startswith("data_mart") else "owner",
        },
        "join_group": {"group": GROUP, "member": whom},
        "give_space_role": {"space": "fin", "to": whom, "space_role": of},
        "change_owner": {"resource": of, "owner": whom},
        "give_security_role": {"member": whom, "security_role": of},
        "remove_member": {"member": whom},
    }
    return play.change(by, {"change": sort, **changes[sort]})


# Without being anybody yet


def open_link(play: Play, who: str, whom: str, what: str) -> bool:
    link = play.knows.newest(whom, "sign_in")
    return link is not None and play.opened(whom, play.post({}, "/api/sign-in/by-link", {"link": link.value}))


def choose_password(play: Play, who: str, whom: str, what: str) -> bool:
    link = play.knows.newest(whom, "password_link")
    if link is None:
        return False
    body = {"link": link.value, "password": what}
    if not play.opened(whom, play.post({}, "/api/password/by-link", body)):
        return False
    play.learn_password(whom, what)
    return True


def sign_in(play: Play, who: str, whom: str, what: str) -> bool:
    known = play.knows.newest(whom, "password")
    if known is None:
        return False
    return play.opened(whom, play.post({}, "/api/sign-in", {"email": address(whom), "password": known.value}))


def accept(play: Play, who: str, whom: str, what: str) -> bool:
    """Join by an invitation that the coalition knows: the account is the coalition's from then on."""
    if whom in play.organization.ids:
        return False
    for secret, rank in reversed(play.waiting):
        body = {"invitation": secret, "name": whom, "password": what}
        answer = play.post({}, "/api/invitations/accept", body)
        if answer.status_code != 200:
            continue
        play.organization.ids[whom] = answer.json()["id"]
        play.coalition.add(whom)
        play.entitled.rank = max(play.entitled.rank, rank)
        play.opened(whom, answer)
        play.learn_password(whom, what)
        return True
    return False


# What honest people do beside the same changes


def hand_link(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    """An admin makes a link for a member and hands it over; an honest one opens it."""
    path = "magic-link" if what == "sign_in" else "password-reset"
    answer = play.post(by, f"/api/members/{play.organization.ids[whom]}/{path}")
    if answer.status_code != 200:
        return False
    secret = secret_of(answer.json()["link"])
    if whom in play.coalition:
        play.learn(what, whom, secret)
    elif what == "sign_in":
        play.post({}, "/api/sign-in/by-link", {"link": secret})
    else:
        play.post({}, "/api/password/by-link", {"link": secret, "password": "a password of their own, honestly"})
    return True


def invite_someone(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    """Somebody is invited and handed the link: a person of the coalition."""
    answer = play.post(by, "/api/invitations", {"email": address(whom), "role": what})
    if answer.status_code != 200:
        return False
    play.waiting.append((secret_of(answer.json()["link"]), RANKS[what]))
    return True


def resend(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    """The newest invitation of an address is made anew, and kept from the coalition."""
    with play.organization.database.read() as connection:
        row = invitation_table.c
        query = select(row.id).where(row.email_key == email_key(address(whom))).order_by(row.id.desc()).limit(1)
        identifier = connection.execute(query).scalar()
    return identifier is not None and play.post(by, f"/api/invitations/{identifier}/resend").status_code == 200


def sign_in_alone(play: Play, by: dict[str, str], who: str, whom: str, what: str) -> bool:
    """An honest member opens a link that they asked for by mail, and makes a token."""
    member, minutes = play.organization.ids[who], play.organization.settings.sign_in.link_minutes
    secret = play.organization.database.write(
        lambda c: make_link(c, member, "sign_in", None, now(), minutes, BY_OPERATOR)
    )
    answer = play.post({}, "/api/sign-in/by-link", {"link": secret})
    if answer.status_code != 200:
        return False  # they were removed
    cookie = answer.headers["set-cookie"].partition("headgate=")[2].partition(";")[0]
    made = play.post({"Cookie": f"headgate={cookie}"}, "/api/tokens", {"name": "my own"})
    play.kept[who] = made.json()["token"]
    return bool(made.status_code == 200)


AS_SOMEBODY: dict[str, Doing] = {
    "make a link": make_a_link,
    "mint": mint,
    "set a password": set_password,
    "integrate": integrate,
    "state": state,
    "invite": invite,
    "ask": ask,
    "answer": answer_request,
    "change": change,
}
AS_NOBODY: dict[str, Callable[[Play, str, str, str], bool]] = {
    "open a link": open_link,
    "choose a password": choose_password,
    "sign in": sign_in,
    "accept": accept,
}
HONESTLY: dict[str, Doing] = {
    "honestly change": change,
    "honestly hand a link": hand_link,
    "honestly invite": invite_someone,
    "honestly resend": resend,
    "honestly sign in": sign_in_alone,
    "honestly answer": answer_request,
}


def do(play: Play, act: Act) -> bool:
    """Do an act; whether anything came of it."""
    name, who, whom, what = act
    is_new = name in {"accept", "invite", "honestly invite", "honestly resend"}
    if not is_new and not {who, whom} <= play.organization.ids.keys():
        return False
    if name in AS_NOBODY:
        return AS_NOBODY[name](play, who, whom, what)
    by = play.honest(who) if name in HONESTLY else play.by(who)
    return by is not None and {**AS_SOMEBODY, **HONESTLY}[name](play, by, who, whom, what)


ROLES = ("admin", "technical", "business")
WEIGHTS = {
    "make a link": 6,
    "open a link": 6,
    "choose a password": 4,
    "mint": 5,
    "set a password": 2,
    "sign in": 3,
    "integrate": 2,
    "state": 2,
    "invite": 3,
    "accept": 3,
    "ask": 1,
    "answer": 1,
    "change": 4,
    "honestly change": 7,
    "honestly hand a link": 1,
    "honestly invite": 1,
    "honestly resend": 1,
    "honestly sign in": 2,
    "honestly answer": 1,
}


def drawn(rng: Random, play: Play) -> Act:
    """An act at random. Nobody honest makes an owner of one of the coalition: then it could take everything."""
    (name,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
    known = sorted({*play.coalition, *(secret.account for secret in play.knows.secrets if secret.account)})
    who, whom = rng.choice(known), rng.choice(SEARCHED)
    if name in {"open a link", "choose a password", "sign in"}:
        whom = rng.choice(known)
    if name.startswith("honestly"):
        who = rng.choice((*OWNERS, *OTHERS))
        if name == "honestly change":
            # What a promotion does is what is looked for.
            who = rng.choice((*OWNERS, who))
            honest = [one for one in OTHERS if one not in play.coalition]
            return name, who, *(_change(rng, whom) if rng.random() < 0.6 else (rng.choice(honest), "set_role owner"))
    match name:
        case "make a link" | "honestly hand a link":
            return name, who, whom, rng.choice(("sign_in", "password_link"))
        case "mint":
            return name, who, whom, rng.choice(("full", "full", "read-only", "ending"))
        case "set a password" | "choose a password" | "accept":
            return name, who, rng.choice(NEW) if name == "accept" else whom, rng.choice(PASSWORDS)
        case "invite" | "honestly invite" | "honestly resend":
            return name, who, rng.choice(NEW), rng.choice(ROLES)
        case "ask":
            return name, who, whom, rng.choice(TARGETS)
        case "change":
            return name, who, *_change(rng, whom)
    return name, who, whom, ""


def _change(rng: Random, whom: str) -> tuple[str, str]:
    data = rng.choice(("layer:raw", "table:raw.orders"))
    owned = rng.choice(("storage:wh", "data_mart:sales", "destination:sheet"))
    sorts = (
        f"set_role {rng.choice(ROLES)}",
        f"grant {data} {rng.choice(('viewer', 'editor', 'manager'))}",
        f"share {owned}",
        f"add_owner {owned}",
        "join_group",
        f"give_space_role {rng.choice(('can_view', 'can_manage', 'can_edit'))}",
        f"change_owner {rng.choice(('space:fin', 'connection:erp', 'project:p1'))}",
        f"give_security_role {rng.choice(('tenant_admin', 'data_admin'))}",
        "remove_member",
    )
    return whom, rng.choice(sorts)
