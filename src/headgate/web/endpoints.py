"""The page that a link leads to: it keeps the link's secret in the browser until a person presses the button."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from fastapi import Response

from headgate.platform.http.guards import Public
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(tags=["pages"])


@cache
def _page() -> tuple[str, str]:
    """The page, and the policy that lets its own style and script run and nothing else."""
    text = (files("headgate.web") / "link.html").read_text(encoding="utf-8")
    hashes = {
        name: base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        for name, body in re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL)
    }
    policy = (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    return text, policy


@router.governed(
    "GET", "/link", Public("shows a page that is the same for everyone"), Audit.nothing, text="text/html", offline=True
)
def link_page(call: Call) -> Response:
    """A page on which an invitation is accepted, or a link signs in; opening it changes nothing."""
    text, policy = _page()
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": policy})
