"""The OAuth2 token endpoint that stock clients expect. It accepts an API token as the client secret and returns it
unchanged.

Nothing new is issued, so revoking the API token is sufficient.
"""

from urllib.parse import parse_qs

from fastapi import Request, Response

from headgate.lakehouse.catalog.endpoints import LOADS, read_body
from headgate.lakehouse.catalog.responses import json_response
from headgate.organization.tokens import service as tokens
from headgate.platform.http.guards import Public
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/iceberg/v1", tags=["catalog"], include_in_schema=False)

CLIENT_CREDENTIALS = "client_credentials"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name of a kind
MAX_FORM = 64 << 10


class _Refused(Exception):
    """An OAuth error response."""

    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(description)
        self.status, self.error = status, error


@router.governed(
    "POST",
    "/oauth/tokens",
    Public("proves a token by itself"),
    Audit.nothing,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def exchange_token(stages: Stages, request: Request) -> Response:
    """Client credentials whose secret is an API token, or the exchange of an API token for itself."""
    try:
        secret = _secret(request._body)  # noqa: SLF001 - read by read_body
        return json_response(stages.read(lambda call: _answer(call, secret)))
    except _Refused as refused:
        body = {"error": refused.error, "error_description": str(refused)}
        return json_response(body, refused.status)


def _secret(content: bytes) -> str:
    """The API token in a form body."""
    try:
        if len(content) > MAX_FORM:
            raise ValueError
        result = parse_qs(content.decode("ascii"), max_num_fields=50, strict_parsing=bool(content), errors="strict")
    except ValueError:
        raise _Refused(400, "invalid_request", "The body must be a form (application/x-www-form-urlencoded)") from None
    form = {name: values[-1] for name, values in result.items()}
    match form.get("grant_type"):
        case "client_credentials":
            return form.get("client_secret", "")
        case kind if kind == EXCHANGE:
            if form.get("actor_token"):
                raise _Refused(400, "invalid_request", "A token cannot be exchanged for another member's")
            return form.get("subject_token", "")
        case None:
            raise _Refused(400, "invalid_request", "grant_type is required")
    raise _Refused(400, "unsupported_grant_type", f"Supported grant types: {CLIENT_CREDENTIALS} and {EXCHANGE}")


def _answer(call: Call, secret: str) -> dict[str, str | int]:
    identity = tokens.identify(call.connection, secret.strip(), call.now)
    if identity is None:
        raise _Refused(401, "invalid_client", "The secret must be a valid API token of Headgate")
    answer: dict[str, str | int] = {
        "access_token": secret.strip(),
        "token_type": "bearer",
        "issued_token_type": ACCESS_TOKEN,
    }
    if identity.narrowing.expires is not None:
        answer["expires_in"] = max(1, int((identity.narrowing.expires - call.now).total_seconds()))
    return answer
