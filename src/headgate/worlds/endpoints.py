"""Worlds over HTTP: test one, and export the organization as one."""

from fastapi import Response

from headgate.access.worlds import read_world
from headgate.access.yaml_nodes import WorldError
from headgate.kit.errors import Invalid
from headgate.platform.http.guards import OnOrganization
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.worlds import schemas
from headgate.worlds.exporter import Exporter, as_yaml
from headgate.worlds.runner import run_world

router = GovernedRouter(prefix="/api/access", tags=["access"])

MAX_ASSERTIONS = 20_000


@router.governed("POST", "/test", OnOrganization("ask_about_members"), Audit.nothing)
def test_world(call: Call, body: schemas.WorldRequest) -> schemas.WorldAnswer:
    """Evaluate the assertions of a world in a database of its own; nothing of this organization is touched."""
    try:
        world = read_world(body.world, body.name)
    except WorldError as error:
        raise Invalid(str(error), line=error.line, key=error.key) from None
    size = sum(len(check.actions) for check in world.checks) + len(world.lists) + len(world.who_can)
    if size > MAX_ASSERTIONS:
        raise Invalid(f"a world tested over HTTP has at most {MAX_ASSERTIONS:,} assertions; this one has {size:,}")
    results = run_world(world)
    failures = [
        schemas.Assertion(line=result.line, passed=False, text=result.text, explanation=list(result.explanation))
        for result in results
        if not result.passed
    ]
    return schemas.WorldAnswer(passed=len(results) - len(failures), failed=len(failures), failures=failures)


@router.governed("GET", "/export", OnOrganization("ask_about_members"), Audit.reads, text="application/yaml")
def export_world(call: Call) -> Response:
    """The organization as a world in YAML, with what each member sees now as its assertions."""
    reader = None if call.caller.operator else call.caller.member
    call.note_read("ask_about_members", "organization", "organization")
    text = as_yaml(Exporter(call.connection, call.now, reader=reader).world())
    return Response(text, media_type="application/yaml")
