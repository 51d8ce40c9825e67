"""What is asked of an API: where, how it is paged, who asks, within which limits."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Auth:
    """Who asks. Secrets are never shown, and taken out of whatever is said."""

    style: str = "none"
    """none, bearer, basic, header, query, or oauth2 (client credentials)."""

    name: str = ""
    """header, query: the header or parameter; basic: the user; oauth2: the client's id."""

    secret: str = field(default="", repr=False)
    token_url: str = ""
    scope: str = ""
    audience: str = ""
    in_body: bool = False
    """oauth2: the id and secret are sent in the body of the request for a token, and not in its header."""


@dataclass(frozen=True)
class Pages:
    """How the API gives more rows than fit one answer."""

    style: str = "none"
    parameter: str = "page"
    first: int = 1
    size: int = 100
    size_parameter: str = ""
    next: str = ""


@dataclass(frozen=True)
class Limits:
    """How much is read at most, and how patiently."""

    answer_bytes: int = 32 << 20
    pages: int = 100_000
    call_seconds: float = 60.0
    attempts: int = 6
    longest_wait: float = 300.0
    """The longest time, in seconds, that the API may ask us to wait before another try."""

    calls_per_second: float = 0.0
    """Over all partitions; 0 for as fast as it answers."""


@dataclass(frozen=True)
class Proxy:
    """The way out: an HTTP proxy that knows CONNECT."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True)
class RequestOptions:
    """All that a reader needs."""

    base: str
    """The connection's address. Nothing outside of its origin is called, but the address that gives tokens."""

    path: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    parameters: tuple[tuple[str, str], ...] = ()
    rows: str = ""
    pages: Pages = Pages()
    auth: Auth = Auth()
    limits: Limits = Limits()
    partition_parameter: str = ""
    partitions: tuple[str, ...] = ()
    tasks: int = 4
    """How many partitions are read at once."""

    until: float = 0.0
    """When it must be over, in seconds since 1970; 0 for never."""

    pace_file: str = ""
    """A file by which the tasks on a machine keep a common pace; without it, each keeps to its share."""

    proxy: Proxy | None = None
    certificates: str = ""
    """Further certificate authorities to trust, in PEM."""
