"""Every route shows its guard and its audit entry; this table says which. A new route must be entered here."""

from typing import Any

from fastapi.routing import APIRoute

from headgate.app import create_app
from headgate.platform.http.guards import (
    ByWorker,
    OnOrganization,
    OnPipeline,
    OnResource,
    OwnCredentials,
    Public,
    SignedIn,
)
from headgate.platform.http.routes import Declared
from headgate.settings.settings import Settings

PUBLIC, MEMBER, MEMBER_OR_OPERATOR = "anyone", "a member", "a member or the operator"
CREDENTIALS = "a member, not by a narrowed token"
WORKER = "a worker"

ROUTES = {
    ("GET", "/healthz"): (PUBLIC, "nothing"),
    ("GET", "/readyz"): (PUBLIC, "nothing"),
    ("GET", "/metrics"): (PUBLIC, "nothing"),
    ("GET", "/.well-known/authzen-configuration"): (PUBLIC, "nothing"),
    ("POST", "/api/sign-in"): (PUBLIC, "changes"),
    ("POST", "/api/sign-in/links"): (PUBLIC, "changes"),
    ("POST", "/api/sign-in/by-link"): (PUBLIC, "changes"),
    ("POST", "/api/password/by-link"): (PUBLIC, "changes"),
    ("POST", "/api/password/links"): (PUBLIC, "changes"),
    ("POST", "/api/sign-out"): (MEMBER, "changes"),
    ("POST", "/api/me/password"): (CREDENTIALS, "changes"),
    ("GET", "/api/me/sessions"): (CREDENTIALS, "nothing"),
    ("DELETE", "/api/me/sessions"): (CREDENTIALS, "changes"),
    ("DELETE", "/api/me/sessions/{session_id}"): (CREDENTIALS, "changes"),
    ("GET", "/link"): (PUBLIC, "nothing"),
    ("GET", "/api/members"): (MEMBER, "nothing"),
    ("GET", "/api/members/removed"): ("ask_about_members", "nothing"),
    ("GET", "/api/members/{member_id}"): (MEMBER, "nothing"),
    ("POST", "/api/members/{member_id}/magic-link"): ("make_magic_link on {member_id}", "changes"),
    ("POST", "/api/members/{member_id}/password-reset"): ("reset_password on {member_id}", "changes"),
    ("GET", "/api/members/{member_id}/holdings"): ("ask_about_members", "nothing"),
    ("POST", "/api/members/{member_id}/reassign"): ("manage_members", "changes"),
    ("POST", "/api/invitations"): (CREDENTIALS, "changes"),
    ("GET", "/api/invitations"): (MEMBER, "nothing"),
    ("POST", "/api/invitations/{invitation_id}/resend"): (CREDENTIALS, "changes"),
    ("DELETE", "/api/invitations/{invitation_id}"): (CREDENTIALS, "changes"),
    ("POST", "/api/invitations/accept"): (PUBLIC, "changes"),
    ("GET", "/api/notifications"): (MEMBER, "nothing"),
    ("POST", "/api/notifications/read"): (MEMBER, "changes"),
    ("GET", "/api/me/notifications"): (MEMBER, "nothing"),
    ("PUT", "/api/me/notifications"): (MEMBER, "changes"),
    ("GET", "/api/notifications/receivers/{channel}"): ("manage_members", "nothing"),
    ("PUT", "/api/notifications/receivers/{channel}"): ("manage_members", "changes"),
    ("GET", "/api/webhook"): ("manage_settings", "nothing"),
    ("PUT", "/api/webhook"): ("manage_settings", "changes"),
    ("DELETE", "/api/webhook"): ("manage_settings", "changes"),
    ("GET", "/api/groups"): (MEMBER_OR_OPERATOR, "nothing"),
    ("GET", "/api/groups/{group_id}"): (MEMBER_OR_OPERATOR, "nothing"),
    ("POST", "/api/groups"): ("create_group", "changes"),
    ("PATCH", "/api/groups/{group_id}"): ("manage_groups", "changes"),
    ("DELETE", "/api/groups/{group_id}"): ("manage_groups", "changes"),
    ("GET", "/api/contexts"): (MEMBER_OR_OPERATOR, "nothing"),
    ("POST", "/api/contexts"): ("manage_contexts", "changes"),
    ("PATCH", "/api/contexts/{context_id}"): ("manage_contexts", "changes"),
    ("DELETE", "/api/contexts/{context_id}"): ("manage_contexts", "changes"),
    ("GET", "/api/organization"): (MEMBER_OR_OPERATOR, "nothing"),
    ("PATCH", "/api/organization"): ("manage_settings", "changes"),
    ("GET", "/api/organization/usage"): ("manage_billing", "nothing"),
    ("POST", "/api/tokens"): (CREDENTIALS, "changes"),
    ("GET", "/api/tokens"): (CREDENTIALS, "nothing"),
    ("DELETE", "/api/tokens/{token_id}"): (CREDENTIALS, "changes"),
    ("GET", "/api/resources"): (MEMBER, "reads"),
    ("GET", "/api/resources/{resource_id}"): (MEMBER, "reads"),
    ("GET", "/api/access/me"): (MEMBER, "nothing"),
    ("POST", "/api/access/explain"): (MEMBER_OR_OPERATOR, "decisions"),
    ("POST", "/api/access/who-can"): (MEMBER_OR_OPERATOR, "nothing"),
    ("POST", "/api/access/what-can"): (MEMBER_OR_OPERATOR, "nothing"),
    ("POST", "/api/access/what-if"): (MEMBER_OR_OPERATOR, "nothing"),
    ("POST", "/api/access/changes"): (MEMBER, "changes"),
    ("POST", "/api/access/requests"): (MEMBER, "changes"),
    ("GET", "/api/access/requests"): (MEMBER, "nothing"),
    ("GET", "/api/access/requests/{request_id}"): (MEMBER, "nothing"),
    ("POST", "/api/access/requests/{request_id}/approve"): (MEMBER, "changes"),
    ("POST", "/api/access/requests/{request_id}/decline"): (MEMBER, "changes"),
    ("POST", "/api/access/requests/{request_id}/withdraw"): (MEMBER, "changes"),
    ("POST", "/api/access/test"): ("ask_about_members", "nothing"),
    ("GET", "/api/access/export"): ("ask_about_members", "reads"),
    ("GET", "/api/access/tables"): (MEMBER_OR_OPERATOR, "nothing"),
    ("POST", "/api/sql/statements"): (MEMBER, "changes"),
    ("GET", "/api/sql/statements"): (MEMBER, "nothing"),
    ("GET", "/api/sql/statements/{statement_id}"): (MEMBER, "reads"),
    ("GET", "/api/sql/statements/{statement_id}/pages/{number}"): (MEMBER, "reads"),
    ("GET", "/api/sql/statements/{statement_id}/download"): (MEMBER, "reads"),
    ("POST", "/api/sql/statements/{statement_id}/cancel"): (MEMBER, "changes"),
    ("DELETE", "/api/sql/statements/{statement_id}"): (MEMBER, "changes"),
    ("POST", "/api/sql/saved"): (MEMBER, "changes"),
    ("GET", "/api/sql/saved"): (MEMBER, "nothing"),
    ("GET", "/api/sql/saved/{saved_query_id}"): ("see on {saved_query_id}", "nothing"),
    ("PATCH", "/api/sql/saved/{saved_query_id}"): ("edit on {saved_query_id}", "changes"),
    ("DELETE", "/api/sql/saved/{saved_query_id}"): ("delete on {saved_query_id}", "changes"),
    ("POST", "/api/worker/replace"): (WORKER, "changes"),
    ("PUT", "/api/worker/statements/{statement_id}/pages/{number}"): (WORKER, "changes"),
    ("POST", "/api/worker/statements/{statement_id}/analysed"): (WORKER, "changes"),
    ("GET", "/api/layers"): (MEMBER, "reads"),
    ("POST", "/api/layers"): ("create_layer", "changes"),
    ("GET", "/api/layers/{layer_id}"): ("see on {layer_id}", "reads"),
    ("PATCH", "/api/layers/{layer_id}"): ("see on {layer_id}", "changes"),
    ("DELETE", "/api/layers/{layer_id}"): ("delete on {layer_id}", "changes"),
    ("GET", "/api/layers/{layer_id}/grants"): ("see_access on {layer_id}", "reads"),
    ("GET", "/api/tables"): (MEMBER, "reads"),
    ("GET", "/api/tables/{table_id}"): ("see on {table_id}", "reads"),
    ("PATCH", "/api/tables/{table_id}"): ("see on {table_id}", "changes"),
    ("DELETE", "/api/tables/{table_id}"): ("delete on {table_id}", "changes"),
    ("GET", "/api/tables/{table_id}/grants"): ("see_access on {table_id}", "reads"),
    ("GET", "/api/tables/{table_id}/snapshots"): ("see on {table_id}", "reads"),
    ("GET", "/api/tables/{table_id}/history"): ("see on {table_id}", "reads"),
    ("GET", "/api/tables/{table_id}/dependents"): ("see on {table_id}", "reads"),
    ("GET", "/api/tables/{table_id}/preview"): ("execute on {table_id}", "decisions"),
    ("GET", "/api/volumes"): (MEMBER, "reads"),
    ("POST", "/api/volumes"): (MEMBER, "changes"),
    ("GET", "/api/volumes/{volume_id}"): ("see on {volume_id}", "reads"),
    ("PATCH", "/api/volumes/{volume_id}"): ("see on {volume_id}", "changes"),
    ("DELETE", "/api/volumes/{volume_id}"): ("delete on {volume_id}", "changes"),
    ("GET", "/api/volumes/{volume_id}/grants"): ("see_access on {volume_id}", "reads"),
    ("GET", "/api/deleted"): (MEMBER, "reads"),
    ("GET", "/api/sql/names"): (MEMBER, "reads"),
    ("POST", "/api/deleted/{deleted_id}/restore"): (MEMBER, "changes"),
    ("GET", "/api/volumes/{volume_id}/files"): ("see on {volume_id}", "reads"),
    ("PUT", "/api/volumes/{volume_id}/files/{path}"): ("edit on {volume_id}", "changes"),
    ("GET", "/api/volumes/{volume_id}/files/{path}"): ("see on {volume_id}", "reads"),
    ("DELETE", "/api/volumes/{volume_id}/files/{path}"): ("edit on {volume_id}", "changes"),
    ("POST", "/api/volumes/{volume_id}/uploads"): ("edit on {volume_id}", "changes"),
    ("GET", "/api/volumes/{volume_id}/uploads"): ("edit on {volume_id}", "nothing"),
    ("GET", "/api/uploads/{upload_id}"): (MEMBER, "nothing"),
    ("PATCH", "/api/uploads/{upload_id}"): (MEMBER, "changes"),
    ("POST", "/api/uploads/{upload_id}/finish"): (MEMBER, "changes"),
    ("DELETE", "/api/uploads/{upload_id}"): (MEMBER, "changes"),
    ("GET", "/api/spaces"): (MEMBER, "reads"),
    ("POST", "/api/spaces"): ("create_space", "changes"),
    ("GET", "/api/spaces/{space_id}"): ("see on {space_id}", "reads"),
    ("GET", "/api/connections"): (MEMBER, "reads"),
    ("POST", "/api/connections"): (MEMBER, "changes"),
    ("GET", "/api/connections/{connection_id}"): ("list on {connection_id}", "reads"),
    ("PATCH", "/api/connections/{connection_id}"): ("edit on {connection_id}", "changes"),
    ("DELETE", "/api/connections/{connection_id}"): ("delete on {connection_id}", "changes"),
    ("POST", "/api/connections/{connection_id}/checks"): ("test on {connection_id}", "changes"),
    ("GET", "/api/destinations"): (MEMBER, "reads"),
    ("POST", "/api/destinations"): (MEMBER, "changes"),
    ("GET", "/api/destinations/{destination_id}"): ("see on {destination_id}", "reads"),
    ("PATCH", "/api/destinations/{destination_id}"): ("edit on {destination_id}", "changes"),
    ("DELETE", "/api/destinations/{destination_id}"): ("delete on {destination_id}", "changes"),
    ("POST", "/api/destinations/{destination_id}/restore"): ("restore on {destination_id}", "changes"),
    ("POST", "/api/destinations/{destination_id}/checks"): ("test on {destination_id}", "changes"),
    ("GET", "/api/connection-checks/{check_id}"): (MEMBER, "reads"),
    ("GET", "/api/pipelines"): (MEMBER, "reads"),
    ("POST", "/api/pipelines"): (MEMBER, "changes"),
    ("POST", "/api/pipelines/plan"): (MEMBER, "nothing"),
    ("GET", "/api/pipelines/{pipeline_id}"): ("see on {pipeline_id}, open on a task", "reads"),
    ("PATCH", "/api/pipelines/{pipeline_id}"): ("see on {pipeline_id}, list on a task", "changes"),
    ("DELETE", "/api/pipelines/{pipeline_id}"): ("delete on {pipeline_id}", "changes"),
    ("GET", "/api/pipelines/{pipeline_id}/plan"): ("see on {pipeline_id}, open on a task", "nothing"),
    ("POST", "/api/pipelines/{pipeline_id}/confirm"): ("confirm on {pipeline_id}", "changes"),
    ("POST", "/api/pipelines/{pipeline_id}/runs"): ("start on {pipeline_id}", "changes"),
    ("GET", "/api/pipelines/{pipeline_id}/runs"): ("see on {pipeline_id}, open on a task", "nothing"),
    ("GET", "/api/pipelines/{pipeline_id}/triggers"): (MEMBER, "reads"),
    ("POST", "/api/pipelines/{pipeline_id}/triggers"): (MEMBER, "changes"),
    ("POST", "/api/triggers/preview"): (MEMBER, "nothing"),
    ("GET", "/api/triggers/{trigger_id}"): ("see on {trigger_id}", "reads"),
    ("PATCH", "/api/triggers/{trigger_id}"): ("manage on {trigger_id}", "changes"),
    ("POST", "/api/triggers/{trigger_id}/pause"): ("manage on {trigger_id}", "changes"),
    ("POST", "/api/triggers/{trigger_id}/resume"): ("manage on {trigger_id}", "changes"),
    ("DELETE", "/api/triggers/{trigger_id}"): ("manage on {trigger_id}", "changes"),
    ("GET", "/api/integrations"): (MEMBER, "reads"),
    ("POST", "/api/integrations"): (CREDENTIALS, "changes"),
    ("GET", "/api/integrations/{integration_id}"): ("see on {integration_id}", "reads"),
    ("PATCH", "/api/integrations/{integration_id}"): ("edit on {integration_id}", "changes"),
    ("POST", "/api/integrations/{integration_id}/token"): ("edit on {integration_id}", "changes"),
    ("DELETE", "/api/integrations/{integration_id}"): ("delete on {integration_id}", "changes"),
    ("GET", "/api/lineage/{item_id}"): ("see on {item_id}", "reads"),
    ("GET", "/api/pipelines/{pipeline_id}/lineage"): ("see on {pipeline_id}, open on a task", "reads"),
    ("GET", "/api/runs/{run_id}"): ("see on {run_id}", "nothing"),
    ("GET", "/api/runs/{run_id}/log"): ("see on {run_id}", "nothing"),
    ("POST", "/api/runs/{run_id}/cancel"): ("see on {run_id}", "changes"),
    ("POST", "/api/runs/{run_id}/resume"): ("see on {run_id}", "changes"),
    ("DELETE", "/api/runs/{run_id}"): ("delete on {run_id}", "changes"),
    ("GET", "/api/runs/{run_id}/artifacts/{name}"): ("see on {run_id}", "reads"),
    ("GET", "/api/worker/runs/{run_id}/volumes/{volume_id}"): (WORKER, "nothing"),
    ("POST", "/api/worker/jobs/{kind}/{job_id}/log"): (WORKER, "changes"),
    ("POST", "/api/worker/runs/{run_id}/steps/{number}"): (WORKER, "changes"),
    ("PUT", "/api/worker/runs/{run_id}/artifacts/{name}"): (WORKER, "changes"),
    ("POST", "/api/worker/jobs/{kind}/claim"): (WORKER, "changes"),
    ("POST", "/api/worker/jobs/heartbeat"): (WORKER, "changes"),
    ("POST", "/api/worker/jobs/{kind}/{job_id}/finish"): (WORKER, "changes"),
    ("POST", "/api/maintenance/passes"): ("manage_settings", "changes"),
    ("GET", "/api/maintenance/passes"): ("see_settings", "nothing"),
    ("GET", "/api/maintenance/passes/{pass_id}"): ("see_settings", "nothing"),
    ("GET", "/api/audit"): ("read_audit", "nothing"),
    ("POST", "/access/v1/evaluation"): (MEMBER, "decisions"),
    ("POST", "/access/v1/evaluations"): (MEMBER, "decisions"),
    ("POST", "/access/v1/search/subject"): (MEMBER, "nothing"),
    ("POST", "/access/v1/search/resource"): (MEMBER, "nothing"),
    ("POST", "/access/v1/search/action"): (MEMBER, "nothing"),
    ("POST", "/iceberg/v1/oauth/tokens"): (PUBLIC, "nothing"),
    ("GET", "/iceberg/v1/config"): (MEMBER, "nothing"),
    ("GET", "/iceberg/v1/namespaces"): (MEMBER, "nothing"),
    ("POST", "/iceberg/v1/namespaces"): (MEMBER, "changes"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}"): (MEMBER, "nothing"),
    ("DELETE", "/iceberg/v1/namespaces/{namespace_}"): (MEMBER, "changes"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/properties"): (MEMBER, "changes"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/tables"): (MEMBER, "nothing"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables"): (MEMBER, "changes"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/register"): (MEMBER, "nothing"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}"): (MEMBER, "reads"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}"): (MEMBER, "changes"),
    ("DELETE", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}"): (MEMBER, "changes"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}/metrics"): (MEMBER, "nothing"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}/sign"): (MEMBER, "reads"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}/credentials"): (MEMBER, "reads"),
    ("POST", "/iceberg/v1/signer/{table_id}"): (MEMBER, "reads"),
    ("POST", "/iceberg/v1/tables/rename"): (MEMBER, "changes"),
    ("POST", "/iceberg/v1/transactions/commit"): (MEMBER, "changes"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/views"): (MEMBER, "nothing"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/views"): (MEMBER, "changes"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/views/{view_}"): (MEMBER, "reads"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/views/{view_}"): (MEMBER, "changes"),
    ("DELETE", "/iceberg/v1/namespaces/{namespace_}/views/{view_}"): (MEMBER, "changes"),
    ("POST", "/iceberg/v1/views/rename"): (MEMBER, "changes"),
}


def guard_of(declared: Declared) -> str:
    """A guard by its word in the table."""
    match declared.guard:
        case Public():
            return PUBLIC
        case SignedIn():
            return MEMBER_OR_OPERATOR if declared.guard.operator_too else MEMBER
        case OwnCredentials():
            return CREDENTIALS
        case ByWorker():
            return WORKER
        case OnOrganization():
            return declared.guard.action
        case OnPipeline():
            return f"{declared.guard.action} on {{{declared.guard.parameter}}}, {declared.guard.on_task} on a task"
        case OnResource():
            return f"{declared.guard.action} on {{{declared.guard.parameter}}}"
    raise AssertionError(f"a guard without a word: {declared.guard}")


def routes(app: Any) -> list[APIRoute]:
    """Every route, however deep it is nested."""
    found, pending = [], list(app.routes)
    while pending:
        route = pending.pop()
        if isinstance(route, APIRoute):
            found.append(route)
        else:
            pending += getattr(route, "original_router", route).__dict__.get("routes", [])
    assert found
    return found


def test_every_route_is_in_the_table_with_its_guard_and_audit_entry(tmp_path: Any) -> None:
    app = create_app(Settings(data_dir=tmp_path, database={"url": "sqlite://"}))
    found = {}
    for route in routes(app):
        declared = getattr(route.endpoint, "declared", None)
        assert declared is not None, f"{route.path} was added without a guard"
        for method in route.methods:
            found[method, route.path_format] = (guard_of(declared), declared.audit.value)
    assert found == ROUTES


def test_nothing_but_the_document_is_served_beside_them(tmp_path: Any) -> None:
    app = create_app(Settings(data_dir=tmp_path, database={"url": "sqlite://"}))
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    # The catalog speaks the Iceberg REST specification, which is a document of its own.
    assert documented == {one for one in ROUTES if not one[1].startswith("/iceberg/")}
    bare = {getattr(route, "path", None) for route in app.routes if type(route).__name__ == "Route"}
    assert bare <= {"/api/openapi.json"}


def test_no_get_changes_anything(tmp_path: Any) -> None:
    app = create_app(Settings(data_dir=tmp_path, database={"url": "sqlite://"}))
    for route in routes(app):
        if "GET" in (route.methods or ()):
            assert not route.endpoint.declared.writes, route.path  # type: ignore[attr-defined]
