"""Every route, asked by ten kinds of callers, against a declared table of what each is answered.

A request is well formed and about something that exists; the table says the status for each caller. `ok` stands for 200.
"""

from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.organization.tokens.service import create
from tests.platform.http.test_route_table import ROUTES
from tests.support.company import Api, Company

PERSONAS = (
    "nobody",
    "expired",
    "owner",
    "admin",
    "technical",
    "business",
    "data admin",
    "read-only admin",
    "listed admin",
    "removed",
)


def apis(millrace: Company) -> dict[str, Api]:
    """The API, as each kind of caller uses it."""
    moment = now()
    gone = millrace.as_("Bea")
    ended = millrace.database.write(
        lambda connection: create(connection, millrace.id("member", "Adam"), "old", moment, expires=moment).secret
    )
    millrace.as_("Olga").change(change="remove_member", member="Bea").raise_for_status()
    return {
        "nobody": millrace.as_(None),
        "expired": Api(millrace.client, ended),
        "owner": millrace.as_("Olga"),
        "admin": millrace.as_("Adam"),
        "technical": millrace.as_("Tess"),
        "business": millrace.as_("Ben"),
        "data admin": millrace.as_("Dora"),
        "read-only admin": millrace.as_("Adam", read_only=True),
        "listed admin": millrace.as_("Adam", only=[millrace.id("table", "service.revenue")]),
        "removed": gone,
    }


def expected(row: str) -> dict[str, int]:
    """A row of the table: a status for each persona, or one for all who are known."""
    words = row.split()
    if len(words) == 1:
        words = ["401", "401", *words * 7, "401"]
    assert len(words) == len(PERSONAS), row
    return {who: 200 if word == "ok" else int(word) for who, word in zip(PERSONAS, words, strict=True)}


EVERYONE = "ok ok ok ok ok ok ok ok ok ok"
ADMINS = "401 401 ok ok 403 403 403 403 403 401"
OWN = "401 401 ok ok ok ok ok 403 403 401"

NOBODY = " ".join(["401"] * 10)
A_HISTORY = {"kind": "history", "table": "raw.orders", "output": "trusted.versions", "keys": ["id"]}
A_WORKER = {"worker": f"wrk_{'0' * 20}", "name": "w", "version": "1"}

IN_LAYER = "401 401 ok ok ok 404 404 ok ok 401"
"""Who sees the layer `service`. Its table has no content yet, and engines other than ours are off: tests/lakehouse/catalog has
what each may do where there is something."""
REVENUE = {"namespace": ["service"], "name": "revenue"}
SIGN = {"method": "GET", "uri": "http://store/lake/file", "region": "us-east-1"}
SEES_RAW = "401 401 ok ok ok 404 404 ok 404 401"
EVERY_HOUR = {"kind": "cron", "cron": "0 * * * *"}
MANAGES_RAW = "401 401 ok ok ok 404 404 403 404 401"

IN_SPACE = "401 401 ok ok ok ok ok ok 404 401"
"""Who sees the space `Sales data`, and what lies in it: its owner, its members, and admins of all sorts."""
DATABASE = {"kind": "postgresql", "host": "db.example.com", "database": "shop", "user": "reader"}

MART = {
    "subject": {"type": "member", "id": "{me}"},
    "action": {"name": "see"},
    "resource": {"type": "data_mart", "id": "Revenue"},
}

TABLE: dict[tuple[str, str], tuple[Any, str]] = {
    ("GET", "/healthz"): (None, EVERYONE),
    ("GET", "/readyz"): (None, EVERYONE),
    ("GET", "/metrics"): (None, EVERYONE),
    ("GET", "/link"): (None, EVERYONE),
    ("GET", "/.well-known/authzen-configuration"): (None, EVERYONE),
    ("POST", "/api/sign-in"): ({"email": "x@example.com", "password": "wrong"}, " ".join(["401"] * 10)),
    ("POST", "/api/sign-in/links"): ({"email": "x@example.com"}, EVERYONE),
    ("POST", "/api/password/links"): ({"email": "x@example.com"}, EVERYONE),
    ("POST", "/api/sign-in/by-link"): ({"link": "hgl_x"}, " ".join(["410"] * 10)),
    ("POST", "/api/password/by-link"): ({"link": "hgp_x", "password": "x"}, " ".join(["410"] * 10)),
    ("POST", "/api/invitations/accept"): ({"invitation": "hgi_x", "name": "N"}, " ".join(["410"] * 10)),
    ("POST", "/api/sign-out"): (None, "409"),
    ("POST", "/api/me/password"): ({"password": "nine tall poplars by a weir"}, OWN),
    ("GET", "/api/me/sessions"): (None, OWN),
    ("DELETE", "/api/me/sessions"): (None, OWN),
    ("DELETE", "/api/me/sessions/{session_id}"): (None, "401 401 404 404 404 404 404 403 403 401"),
    ("GET", "/api/members"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("GET", "/api/members/removed"): (None, ADMINS),
    ("GET", "/api/members/{member_id}"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("POST", "/api/members/{member_id}/magic-link"): (None, ADMINS),
    ("POST", "/api/members/{member_id}/password-reset"): (None, ADMINS),
    ("GET", "/api/members/{member_id}/holdings"): (None, ADMINS),
    ("POST", "/api/members/{member_id}/reassign"): ({"to": "Tess", "resources": []}, ADMINS),
    ("POST", "/api/invitations"): (
        {"email": "{who}@example.com", "role": "technical"},
        "401 401 ok ok ok 403 403 403 403 401",
    ),
    ("GET", "/api/invitations"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("POST", "/api/invitations/{invitation_id}/resend"): (None, "401 401 404 404 404 404 404 403 403 401"),
    ("DELETE", "/api/invitations/{invitation_id}"): (None, "401 401 404 404 404 404 404 403 403 401"),
    ("GET", "/api/webhook"): (None, ADMINS),
    ("PUT", "/api/webhook"): ({"url": "https://93.184.216.34/hook"}, ADMINS),
    ("DELETE", "/api/webhook"): (None, ADMINS.replace("ok ok", "404 404")),
    ("GET", "/api/groups"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("GET", "/api/groups/{group_id}"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("POST", "/api/groups"): ({"name": "{who}"}, ADMINS),
    ("PATCH", "/api/groups/{group_id}"): ({"name": "{who} again"}, ADMINS),
    ("DELETE", "/api/groups/{group_id}"): (None, "401 401 ok 404 403 403 403 403 403 401"),
    ("GET", "/api/contexts"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("POST", "/api/contexts"): ({"name": "{who}"}, ADMINS),
    ("PATCH", "/api/contexts/{context_id}"): ({"name": "{who} again"}, ADMINS),
    ("DELETE", "/api/contexts/{context_id}"): (None, "401 401 409 409 403 403 403 403 403 401"),
    ("GET", "/api/organization"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("PATCH", "/api/organization"): ({"name": "Mill"}, ADMINS),
    ("GET", "/api/organization/usage"): (None, "401 401 ok 403 403 403 403 403 403 401"),
    ("POST", "/api/tokens"): ({"name": "mine"}, OWN),
    ("GET", "/api/tokens"): (None, OWN),
    ("DELETE", "/api/tokens/{token_id}"): (None, "401 401 404 404 404 404 404 403 403 401"),
    ("GET", "/api/notifications"): (None, "ok"),
    ("GET", "/api/notifications/receivers/{channel}"): (None, ADMINS),
    ("PUT", "/api/notifications/receivers/{channel}"): ({"receivers": [{"member": "Ben"}]}, ADMINS),
    ("POST", "/api/notifications/read"): ({"all": True}, OWN),
    ("GET", "/api/me/notifications"): (None, "401 401 ok ok ok ok ok ok 403 401"),
    ("PUT", "/api/me/notifications"): ({"channels": []}, OWN),
    ("POST", "/api/access/requests"): (
        {"action": "edit", "resource": "data_mart:Revenue", "reason": "the audit"},
        "401 401 409 409 409 ok ok 403 403 401",
    ),
    ("GET", "/api/access/requests"): (None, "ok"),
    ("GET", "/api/access/requests/{request_id}"): (None, "404"),
    ("POST", "/api/access/requests/{request_id}/approve"): (
        {"change": {"change": "set_plan", "plan": "starter"}},
        "401 401 404 404 404 404 404 403 403 401",
    ),
    ("POST", "/api/access/requests/{request_id}/decline"): (
        {"comment": "no"},
        "401 401 404 404 404 404 404 403 403 401",
    ),
    ("POST", "/api/access/requests/{request_id}/withdraw"): (None, "401 401 404 404 404 404 404 403 403 401"),
    ("GET", "/api/resources"): ({"kind": "data_mart"}, "ok"),
    ("GET", "/api/resources/{resource_id}"): (None, "401 401 ok ok ok ok ok ok 404 401"),
    ("GET", "/api/access/me"): (None, "ok"),
    ("POST", "/api/access/explain"): (
        {"action": "see", "resource": "data_mart:Revenue"},
        "401 401 ok ok ok ok ok ok 404 401",
    ),
    ("POST", "/api/access/who-can"): (
        {"action": "see", "resource": "data_mart:Revenue"},
        "401 401 ok ok ok 403 403 403 404 401",
    ),
    ("POST", "/api/access/what-can"): ({"kind": "data_mart"}, "ok"),
    ("POST", "/api/access/what-if"): (
        {"change": {"change": "share", "resource": "data_mart:Revenue", "for_use": True}},
        "401 401 ok ok ok 403 403 403 404 401",
    ),
    ("POST", "/api/access/changes"): (
        {"change": "share", "resource": "data_mart:Revenue", "for_use": True},
        "401 401 ok ok ok 403 403 403 404 401",
    ),
    ("POST", "/api/access/test"): ({"world": "members: {a: {role: owner}}\nresources: []\nchecks: []\n"}, ADMINS),
    ("GET", "/api/access/export"): (None, ADMINS),
    ("GET", "/api/access/tables"): (None, "ok"),
    ("POST", "/api/sql/statements"): ({"sql": "SELECT 1"}, "401 401 ok ok ok ok ok ok ok 401"),
    ("GET", "/api/sql/statements"): (None, "ok"),
    ("GET", "/api/sql/statements/{statement_id}"): (None, "404"),
    ("GET", "/api/sql/statements/{statement_id}/pages/{number}"): (None, "404"),
    ("GET", "/api/sql/statements/{statement_id}/download"): (None, "404"),
    ("POST", "/api/sql/statements/{statement_id}/cancel"): (None, "404"),
    ("DELETE", "/api/sql/statements/{statement_id}"): (None, "404"),
    ("POST", "/api/sql/saved"): ({"name": "{who}", "sql": "SELECT 1"}, OWN),
    ("GET", "/api/sql/saved"): (None, "ok"),
    ("GET", "/api/sql/saved/{saved_query_id}"): (None, "404"),
    ("PATCH", "/api/sql/saved/{saved_query_id}"): ({"name": "{who}"}, "404"),
    ("DELETE", "/api/sql/saved/{saved_query_id}"): (None, "404"),
    ("PUT", "/api/worker/statements/{statement_id}/pages/{number}"): (None, NOBODY),
    ("POST", "/api/worker/statements/{statement_id}/analysed"): ({"worker": A_WORKER["worker"], "fence": 1}, NOBODY),
    ("GET", "/api/layers"): (None, "ok"),
    ("POST", "/api/layers"): ({"name": "gold"}, "401 401 ok 409 403 403 403 403 403 401"),
    ("GET", "/api/layers/{layer_id}"): (None, "401 401 ok ok ok ok 404 ok 404 401"),
    ("PATCH", "/api/layers/{layer_id}"): ({"title": "{who}"}, "401 401 ok ok ok 403 404 403 404 401"),
    ("DELETE", "/api/layers/{layer_id}"): (None, "401 401 409 409 409 403 404 403 404 401"),
    ("GET", "/api/layers/{layer_id}/grants"): (None, "401 401 ok ok ok 403 404 403 404 401"),
    ("GET", "/api/tables"): (None, "ok"),
    ("GET", "/api/tables/{table_id}"): (None, SEES_RAW),
    ("PATCH", "/api/tables/{table_id}"): ({"title": "{who}"}, MANAGES_RAW),
    ("DELETE", "/api/tables/{table_id}"): (None, "401 401 ok 404 404 404 404 404 404 401"),
    ("GET", "/api/tables/{table_id}/grants"): (None, MANAGES_RAW),
    ("GET", "/api/tables/{table_id}/snapshots"): (None, SEES_RAW),
    ("GET", "/api/tables/{table_id}/history"): (None, SEES_RAW),
    ("GET", "/api/tables/{table_id}/dependents"): (None, SEES_RAW),
    ("GET", "/api/tables/{table_id}/preview"): (None, "401 401 409 409 409 404 404 409 404 401"),
    ("GET", "/api/volumes"): (None, "ok"),
    ("POST", "/api/volumes"): ({"layer": "raw", "name": "new"}, "401 401 ok 409 409 404 404 403 404 401"),
    ("GET", "/api/volumes/{volume_id}"): (None, SEES_RAW),
    ("PATCH", "/api/volumes/{volume_id}"): ({"title": "{who}"}, MANAGES_RAW),
    ("DELETE", "/api/volumes/{volume_id}"): (None, "401 401 ok 404 404 404 404 404 404 401"),
    ("GET", "/api/volumes/{volume_id}/grants"): (None, MANAGES_RAW),
    ("GET", "/api/deleted"): (None, "ok"),
    ("GET", "/api/sql/names"): (None, "ok"),
    ("POST", "/api/deleted/{deleted_id}/restore"): ({}, "404"),
    ("GET", "/api/volumes/{volume_id}/files"): (None, "401 401 ok ok ok 404 404 ok 404 401"),
    ("PUT", "/api/volumes/{volume_id}/files/{path}"): (None, "401 401 ok 409 409 404 404 403 404 401"),
    ("GET", "/api/volumes/{volume_id}/files/{path}"): (None, "404"),
    ("DELETE", "/api/volumes/{volume_id}/files/{path}"): (None, "401 401 404 404 404 404 404 403 404 401"),
    ("POST", "/api/volumes/{volume_id}/uploads"): (
        {"path": "{who}.csv", "size": 1},
        "401 401 ok ok ok 404 404 403 404 401",
    ),
    ("GET", "/api/volumes/{volume_id}/uploads"): (None, "401 401 ok ok ok 404 404 403 404 401"),
    ("GET", "/api/uploads/{upload_id}"): (None, "404"),
    ("PATCH", "/api/uploads/{upload_id}"): (None, "404"),
    ("POST", "/api/uploads/{upload_id}/finish"): ({}, "404"),
    ("DELETE", "/api/uploads/{upload_id}"): (None, "404"),
    ("GET", "/api/spaces"): (None, "ok"),
    ("POST", "/api/spaces"): ({"name": "{who}"}, "401 401 ok ok 403 403 ok 403 403 401"),
    ("GET", "/api/spaces/{space_id}"): (None, IN_SPACE),
    ("GET", "/api/connections"): (None, "ok"),
    ("POST", "/api/connections"): (
        {"name": "{who}", "space": "Sales data", "place": DATABASE},
        "401 401 ok ok ok 403 403 403 404 401",
    ),
    ("GET", "/api/connections/{connection_id}"): (None, IN_SPACE),
    ("PATCH", "/api/connections/{connection_id}"): (
        {"place": DATABASE, "secrets": {"password": "x"}},
        "401 401 403 403 ok 403 403 403 404 401",
    ),
    ("DELETE", "/api/connections/{connection_id}"): (None, "401 401 409 409 409 403 409 403 404 401"),
    ("POST", "/api/connections/{connection_id}/checks"): (
        {"operation": "test"},
        "401 401 409 409 409 403 403 403 404 401",
    ),
    ("GET", "/api/destinations"): (None, "ok"),
    ("POST", "/api/destinations"): ({"name": "{who}", "place": DATABASE}, "401 401 ok ok ok ok ok 403 403 401"),
    ("GET", "/api/destinations/{destination_id}"): (None, "401 401 ok ok ok ok ok ok 404 401"),
    ("PATCH", "/api/destinations/{destination_id}"): (
        {"name": "{who}"},
        "401 401 ok ok 403 ok 403 403 404 401",
    ),
    ("DELETE", "/api/destinations/{destination_id}"): (None, "401 401 ok 403 404 403 404 404 404 401"),
    ("POST", "/api/destinations/{destination_id}/restore"): (None, "401 401 403 403 403 403 403 403 404 401"),
    ("POST", "/api/destinations/{destination_id}/checks"): (
        {"operation": "test"},
        "401 401 409 409 403 409 403 403 404 401",
    ),
    ("GET", "/api/connection-checks/{check_id}"): (None, "404"),
    ("GET", "/api/pipelines"): (None, "ok"),
    ("POST", "/api/pipelines"): ({"name": "{who}", "definition": A_HISTORY}, "401 401 ok ok ok 403 403 403 403 401"),
    ("POST", "/api/pipelines/plan"): ({"definition": A_HISTORY}, "401 401 ok ok ok 403 403 403 403 401"),
    ("GET", "/api/pipelines/{pipeline_id}"): (None, SEES_RAW),
    ("PATCH", "/api/pipelines/{pipeline_id}"): ({"name": "Land them"}, MANAGES_RAW),
    ("DELETE", "/api/pipelines/{pipeline_id}"): (None, "401 401 ok 404 404 404 404 404 404 401"),
    ("GET", "/api/pipelines/{pipeline_id}/plan"): (None, SEES_RAW),
    ("POST", "/api/pipelines/{pipeline_id}/confirm"): ({"versions": {}}, MANAGES_RAW.replace("ok", "409")),
    ("POST", "/api/pipelines/{pipeline_id}/runs"): ({}, MANAGES_RAW.replace("ok", "409")),
    ("GET", "/api/pipelines/{pipeline_id}/runs"): (None, SEES_RAW),
    ("GET", "/api/pipelines/{pipeline_id}/triggers"): (None, SEES_RAW),
    ("POST", "/api/pipelines/{pipeline_id}/triggers"): ({"name": "{who}", "when": EVERY_HOUR}, MANAGES_RAW),
    ("POST", "/api/triggers/preview"): ({"cron": "0 * * * *"}, "ok"),
    ("GET", "/api/triggers/{trigger_id}"): (None, SEES_RAW),
    ("PATCH", "/api/triggers/{trigger_id}"): ({"when": EVERY_HOUR}, MANAGES_RAW),
    ("POST", "/api/triggers/{trigger_id}/pause"): (None, "401 401 ok 409 409 404 404 403 404 401"),
    ("POST", "/api/triggers/{trigger_id}/resume"): (None, MANAGES_RAW.replace("ok", "409")),
    ("DELETE", "/api/triggers/{trigger_id}"): (None, "401 401 ok 404 404 404 404 404 404 401"),
    ("GET", "/api/integrations"): (None, "ok"),
    ("POST", "/api/integrations"): ({"name": "{who}", "tables": ["service.revenue"]}, ADMINS),
    ("GET", "/api/integrations/{integration_id}"): (None, "401 401 ok ok ok 404 404 ok 404 401"),
    ("PATCH", "/api/integrations/{integration_id}"): ({"description": "x"}, "401 401 ok ok 403 404 404 403 404 401"),
    ("POST", "/api/integrations/{integration_id}/token"): ({}, "401 401 ok ok 403 404 404 403 404 401"),
    ("DELETE", "/api/integrations/{integration_id}"): (None, "401 401 ok 404 404 404 404 404 404 401"),
    ("GET", "/api/lineage/{item_id}"): (None, SEES_RAW),
    ("GET", "/api/pipelines/{pipeline_id}/lineage"): (None, SEES_RAW),
    ("GET", "/api/runs/{run_id}"): (None, "404"),
    ("GET", "/api/runs/{run_id}/log"): (None, "404"),
    ("POST", "/api/runs/{run_id}/cancel"): (None, "404"),
    ("POST", "/api/runs/{run_id}/resume"): (None, "404"),
    ("DELETE", "/api/runs/{run_id}"): (None, "404"),
    ("GET", "/api/runs/{run_id}/artifacts/{name}"): (None, "404"),
    ("POST", "/api/worker/replace"): ({**A_WORKER, "dead": [f"wrk_{'1' * 20}"]}, NOBODY),
    ("GET", "/api/worker/runs/{run_id}/volumes/{volume_id}"): ({"worker": A_WORKER["worker"], "fence": 1}, NOBODY),
    ("POST", "/api/worker/jobs/{kind}/{job_id}/log"): ({"worker": A_WORKER["worker"], "fence": 1, "lines": []}, NOBODY),
    ("POST", "/api/worker/runs/{run_id}/steps/{number}"): (
        {"worker": A_WORKER["worker"], "fence": 1, "state": "running"},
        NOBODY,
    ),
    ("PUT", "/api/worker/runs/{run_id}/artifacts/{name}"): (None, NOBODY),
    ("POST", "/api/worker/jobs/{kind}/claim"): ({**A_WORKER, "slots": 1}, NOBODY),
    ("POST", "/api/worker/jobs/heartbeat"): ({**A_WORKER, "running": []}, NOBODY),
    ("POST", "/api/worker/jobs/{kind}/{job_id}/finish"): (
        {"worker": A_WORKER["worker"], "fence": 1, "state": "failed"},
        NOBODY,
    ),
    ("POST", "/api/maintenance/passes"): ({"dry_run": True}, ADMINS),
    ("GET", "/api/maintenance/passes"): (None, ADMINS),
    ("GET", "/api/maintenance/passes/{pass_id}"): (None, "401 401 404 404 403 403 403 403 403 401"),
    ("GET", "/api/audit"): (None, ADMINS),
    ("POST", "/access/v1/evaluation"): (MART, "ok"),
    ("POST", "/access/v1/evaluations"): ({"evaluations": [MART]}, "ok"),
    ("POST", "/access/v1/search/subject"): (
        {**MART, "subject": {"type": "member"}},
        "401 401 ok ok ok 403 403 403 ok 401",
    ),
    ("POST", "/access/v1/search/resource"): ({**MART, "resource": {"type": "data_mart"}}, "ok"),
    ("POST", "/access/v1/search/action"): ({"subject": MART["subject"], "resource": MART["resource"]}, "ok"),
    ("POST", "/iceberg/v1/oauth/tokens"): ({"grant_type": "password"}, " ".join(["400"] * 10)),
    ("GET", "/iceberg/v1/config"): (None, "ok"),
    ("GET", "/iceberg/v1/namespaces"): (None, "ok"),
    ("POST", "/iceberg/v1/namespaces"): ({"namespace": ["{who}"]}, ADMINS),
    ("GET", "/iceberg/v1/namespaces/{namespace_}"): (None, IN_LAYER),
    ("DELETE", "/iceberg/v1/namespaces/{namespace_}"): (None, "401 401 409 409 409 404 404 403 403 401"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/properties"): (
        {"updates": {"comment": "what is served"}},
        "401 401 ok ok ok 404 404 403 403 401",
    ),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/tables"): (None, IN_LAYER),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables"): ({"name": "new"}, "403"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/register"): ({"name": "new"}, IN_LAYER.replace("ok", "403")),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}"): (None, "404"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}"): ({"updates": []}, "403"),
    ("DELETE", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}"): (None, "404"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}/metrics"): ({}, "404"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}/sign"): (SIGN, "404"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/tables/{table_}/credentials"): (None, "404"),
    ("POST", "/iceberg/v1/signer/{table_id}"): (SIGN, "406"),
    ("POST", "/iceberg/v1/tables/rename"): ({"source": REVENUE, "destination": REVENUE}, "404"),
    ("POST", "/iceberg/v1/transactions/commit"): ({"table-changes": [{"identifier": REVENUE}]}, "403"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/views"): (None, IN_LAYER),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/views"): ({"name": "new"}, "403"),
    ("GET", "/iceberg/v1/namespaces/{namespace_}/views/{view_}"): (None, "404"),
    ("POST", "/iceberg/v1/namespaces/{namespace_}/views/{view_}"): ({}, "403"),
    ("DELETE", "/iceberg/v1/namespaces/{namespace_}/views/{view_}"): (None, "404"),
    ("POST", "/iceberg/v1/views/rename"): ({"source": REVENUE, "destination": REVENUE}, "404"),
}
NAMES = {"nobody": "Ben", "expired": "Adam", "owner": "Olga", "admin": "Adam", "technical": "Tess", "business": "Ben"}
NAMES |= {"data admin": "Dora", "read-only admin": "Adam", "listed admin": "Adam", "removed": "Ben"}


def filled(value: Any, who: str) -> Any:
    """A body, with the caller's own name where it says so."""
    if isinstance(value, str):
        return value.replace("{who}", who.replace(" ", "-")).replace("{me}", NAMES[who])
    if isinstance(value, dict):
        return {key: filled(inner, who) for key, inner in value.items()}
    return [filled(inner, who) for inner in value] if isinstance(value, list) else value


def test_every_route_is_in_the_table() -> None:
    assert set(ROUTES) == set(TABLE)


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_each_caller_is_answered_as_the_table_says(millrace_on_sqlite: Company, method: str, path: str) -> None:
    millrace = millrace_on_sqlite
    body, row = TABLE[method, path]
    zero = "0" * 20
    places = {
        "session_id": f"ses_{zero}", "invitation_id": f"inv_{zero}", "token_id": f"tok_{zero}",
        "request_id": f"req_{zero}", "channel": "runs",
        "statement_id": f"stm_{zero}", "number": "1", "saved_query_id": millrace.id("saved_query", "Largest orders"),
        "layer_id": millrace.id("layer", "trusted"), "table_id": millrace.id("table", "raw.orders"),
        "deleted_id": f"tbl_{zero}", "volume_id": millrace.id("volume", "raw.invoices"), "path": "2026/march.csv", "upload_id": f"upl_{zero}",
        "member_id": millrace.id("member", "Ben"), "group_id": millrace.id("group", "stewards"),
        "namespace_": "service", "table_": "revenue", "view_": "v",
        "space_id": millrace.id("space", "Sales data"), "connection_id": millrace.id("connection", "Shop database"),
        "destination_id": millrace.id("destination", "Finance sheet"), "check_id": f"cck_{zero}", "job_id": f"cck_{zero}", "kind": "connection_check",
        "pass_id": f"mnt_{zero}",
        "trigger_id": millrace.id("pipeline_trigger", "Hourly"),
        "pipeline_id": millrace.id("pipeline", "Refine orders"), "run_id": f"run_{zero}", "item_id": millrace.id("table", "raw.orders"),
        "integration_id": millrace.id("integration", "Dashboards"), "name": "plot.png",
        "context_id": millrace.id("context", "finance"), "resource_id": millrace.id("data_mart", "Revenue"),
    }  # fmt: skip
    query = (
        f"?worker={A_WORKER['worker']}&fence=1&media_type=image/png"
        if path.startswith("/api/worker/") and method == "PUT"
        else ""
    )
    found = {}
    for who, api in apis(millrace).items():
        sent = filled(body, who)
        more = {"params": sent} if method == "GET" and sent else {"json": sent} if sent is not None else {}
        headers = {"Upload-Offset": "0"} if path.startswith("/api/uploads/") else {}
        before = denials(millrace)
        found[who] = api.request(method, path.format(**places) + query, headers=headers, **more).status_code
        recorded = denials(millrace) - before
        is_hidden = found[who] == 404 and who not in SEES_ALL and (method, path) not in NO_DECISION
        assert recorded or not (found[who] == 403 or is_hidden), (who, found[who])
    assert found == expected(row)


SEES_ALL = {"owner", "admin"}
"""What is not found for them does not exist: no decision is made about it."""
_CATALOG = "/iceberg/v1/namespaces/{namespace_}"
NO_DECISION = {
    ("GET", "/api/volumes/{volume_id}/files/{path}"): "there is no such file in a volume that they may see",
    ("DELETE", "/api/volumes/{volume_id}/files/{path}"): "there is no such file in a volume that they may see",
    **{
        (method, f"{_CATALOG}/tables/{{table_}}{rest}"): "the table has no content yet; they may see it"
        for method, rest in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/metrics"),
            ("POST", "/sign"),
            ("GET", "/credentials"),
        )
    },
    ("POST", "/iceberg/v1/tables/rename"): "the table has no content yet; they may see it",
    ("GET", f"{_CATALOG}/views/{{view_}}"): "there is no view of this name",
    ("POST", "/iceberg/v1/views/rename"): "there is no view of this name",
    ("DELETE", f"{_CATALOG}/views/{{view_}}"): "there is no view of this name",
}
"""Routes that answer 404 without a decision, and why."""


def denials(millrace: Company) -> int:
    """How many refusals the audit log tells of."""
    return int(millrace.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.denied'")[0][0])
