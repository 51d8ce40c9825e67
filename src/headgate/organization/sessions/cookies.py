"""The cookies of a browser: its session, and a proof that it signed in to an account before."""

import hashlib
import hmac
from http.cookies import SimpleCookie

from fastapi import Request

_DEVICE_DAYS = 400


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


def session_cookie(request: Request) -> str:
    """The name of the session's cookie. On HTTPS the prefix has the browser keep it to this host."""
    return "__Host-headgate" if _is_secure(request) else "headgate"


def device_cookie(request: Request) -> str:
    """The name of the cookie by which a browser proves that it signed in before."""
    return "__Host-headgate-device" if _is_secure(request) else "headgate-device"


def proof(key: bytes, member: str) -> str:
    """What a browser that signed in to an account keeps."""
    return hmac.new(key, member.encode(), hashlib.sha256).hexdigest()


def is_proof(key: bytes, member: str | None, presented: str) -> bool:
    """Whether a browser signed in to this account before."""
    return member is not None and hmac.compare_digest(proof(key, member).encode(), presented.encode("utf-8", "replace"))


def set_cookie(request: Request, name: str, value: str, seconds: float) -> str:
    """A Set-Cookie header that no script reads and no other site sends along with a change."""
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    cookie[name]["path"] = "/"
    cookie[name]["httponly"] = True
    cookie[name]["samesite"] = "Lax"
    cookie[name]["max-age"] = int(seconds)
    if _is_secure(request):
        cookie[name]["secure"] = True
    return cookie[name].OutputString()


def set_device(request: Request, key: bytes, member: str) -> str:
    """The header that has a browser remember that it signed in."""
    return set_cookie(request, device_cookie(request), proof(key, member), _DEVICE_DAYS * 86400)
