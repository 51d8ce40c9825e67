"""Browser cookies: the session, and a proof of an earlier sign-in."""

import hashlib
import hmac
from http.cookies import SimpleCookie

from fastapi import Request

_DEVICE_DAYS = 400


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


def session_cookie(request: Request) -> str:
    """The name of the session cookie. On HTTPS, its prefix makes the browser restrict it to this host."""
    return "__Host-headgate" if _is_secure(request) else "headgate"


def device_cookie(request: Request) -> str:
    """The name of the cookie that proves an earlier sign-in of this browser."""
    return "__Host-headgate-device" if _is_secure(request) else "headgate-device"


def proof(key: bytes, member: str) -> str:
    """The proof stored by a browser that signed in to an account."""
    return hmac.new(key, member.encode(), hashlib.sha256).hexdigest()


def is_proof(key: bytes, member: str | None, presented: str) -> bool:
    """Whether a browser has signed in to this account before."""
    return member is not None and hmac.compare_digest(proof(key, member).encode(), presented.encode("utf-8", "replace"))


def set_cookie(request: Request, name: str, value: str, seconds: float) -> str:
    """A Set-Cookie header that scripts cannot read and that is not sent with cross-site changes."""
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
    """The header that stores the proof of a sign-in."""
    return set_cookie(request, device_cookie(request), proof(key, member), _DEVICE_DAYS * 86400)
