"""Access endpoints: explain, who, what, what-if, changes, worlds, and the rule tables."""

from typing import Any

from headgate.access.actions import DESCRIPTIONS
from headgate.access.book import BOOK
from headgate.kit.errors import Conflict, Invalid
from headgate.kit.ids import kind_of
from headgate.kit.paging import Cursor
from headgate.organization.access import schemas, service
from headgate.organization.access.changes.schemas import Change
from headgate.platform.authorization.schemas import Kind
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/access", tags=["access"])

OWN_OR_ADMIN = "asks about themselves; about another member, with ask_about_members"
SHARERS = "asks about a resource on which they have see_access; about all, with ask_about_members"


@router.governed("GET", "/me", SignedIn("sees themselves"), Audit.nothing)
def get_current_member(call: Call) -> schemas.Me:
    """Get the caller as the access model sees them."""
    subject, limits = call.subject, call.caller.narrowing
    actions = [action for action in BOOK.actions("organization") if call.decide(action, "organization", "organization")]
    return schemas.Me(
        id=subject.id,
        name=subject.name,
        role=subject.role,
        scope="entire" if subject.entire else "selected",
        token=call.caller.token,
        read_only=limits.read_only,
        allowed=actions,
    )


@router.governed("POST", "/explain", SignedIn(OWN_OR_ADMIN, operator_too=True), Audit.decisions)
def explain_access(call: Call, body: schemas.ExplainRequest) -> schemas.Explained:
    """Explain the decision about a member, an action and a resource: if denied, what is missing and who could
    grant it.
    """
    member = service.member_asked(call, body.member)
    question, explanation = service.ask(call, member, body.action, body.resource, body.kind, body.state)
    subject = call.facts.subject(member)
    return schemas.Explained(
        member=subject.name if subject else "",
        action=question.action,
        resource=body.resource,
        allowed=explanation.allowed,
        via=list(explanation.via),
        because=list(explanation.because),
        ways=[
            schemas.PathToActionOut(path=way.path, missing=list(way.missing), how=way.how, who=list(way.who))
            for way in explanation.ways
        ],
    )


@router.governed("POST", "/who-can", SignedIn(SHARERS, operator_too=True), Audit.nothing)
def list_members_with_access(call: Call, body: schemas.WhoRequest) -> schemas.WhoPage:
    """List the members who have an action on a resource, by name."""
    purpose = f"who {body.action} {body.resource}"
    people = service.who(call, body.action, body.resource, body.limit + 1, begins_after(body.cursor, purpose, "cursor"))
    shown, last = people[: body.limit], people[body.limit - 1] if len(people) > body.limit else None
    return schemas.WhoPage(
        items=[schemas.MemberName(id=person.id, name=person.name) for person in shown],
        next_cursor=Cursor(last.key, last.id).encode(purpose) if last else None,
    )


@router.governed("POST", "/what-can", SignedIn(OWN_OR_ADMIN, operator_too=True), Audit.nothing)
def list_member_access(call: Call, body: schemas.WhatRequest) -> schemas.WhatPage:
    """List the resources of a kind that a member sees, each with the member's actions."""
    if body.kind not in Kind.__members__:
        raise Invalid(f"kind: there is no kind {body.kind!r}; the kinds are {', '.join(Kind.__members__)}")
    member = service.member_asked(call, body.member)
    purpose = f"what {member} {body.kind}"
    rows, following = service.what(call, member, body.kind, body.limit, begins_after(body.cursor, purpose, "cursor"))
    subject = call.facts.subject(member)
    return schemas.WhatPage(
        member=subject.name if subject else "",
        items=[
            schemas.Can(id=row.id, kind=row.kind, name=row.name, actions=list(row.allowed), via=list(row.via))
            for row in rows
        ],
        next_cursor=following.encode(purpose) if following else None,
    )


@router.governed(
    "POST",
    "/what-if",
    SignedIn("asks about a change that they could make; about any, with ask_about_members", operator_too=True),
    Audit.nothing,
    errors=[Conflict],
)
def preview_access_change(call: Call, body: schemas.WhatIfRequest) -> schemas.WhatIfAnswer:
    """Preview who would gain and lose access by a change. Nothing is written or locked."""
    results, total = service.preview(call, body.change, body.member)
    names = {effect.member: call.facts.subject(effect.member) for effect, _ in results}
    items = [
        schemas.EffectOut(
            member=getattr(names[effect.member], "name", ""),
            kind=effect.kind,
            id=effect.resource,
            name=name,
            gains=list(effect.gains),
            loses=list(effect.loses),
        )
        for effect, name in results
    ]
    return schemas.WhatIfAnswer(items=items, total=total)


@router.governed(
    "POST",
    "/changes",
    SignedIn("makes the changes that the rule tables let them make"),
    Audit.changes,
    errors=[Conflict],
)
def change_access(call: Call, body: Change) -> schemas.Changed:
    """Apply an access change: grants, sharing, owners, contexts, roles, groups, spaces, plan."""
    made = service.apply(call, body)
    return schemas.Changed(
        action=made.action, via=list(made.decision.via), before=_plain(made.before), after=_plain(made.after)
    )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not (isinstance(value, str) and kind_of(value) == "token")}


@router.governed("GET", "/tables", SignedIn("anyone may know the rules", operator_too=True), Audit.nothing)
def get_rule_tables(call: Call) -> schemas.TablesOut:
    """Get all rule tables: the paths of each kind, their conditions in words, and the actions they grant."""
    return schemas.TablesOut(
        tables=[
            schemas.TableOut(
                kind=rules.kind,
                title=rules.title,
                actions={action: DESCRIPTIONS[action] for action in rules.actions},
                paths=[
                    schemas.PathOut(
                        name=path.name,
                        condition=path.condition.words(rules.kind),
                        grants=[action for action in path.grants if action not in rules.internal],
                    )
                    for path in rules.paths
                    if set(path.grants) - rules.internal
                ],
            )
            for rules in BOOK.tables.values()
        ]
    )
