"""The configuration of API reads: URLs, pagination, authentication and limits."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Auth:
    """Authentication. Secrets are never displayed, and are removed from messages."""

    style: str = "none"
    """none, bearer, basic, header, query, or oauth2 (client credentials)."""

    name: str = ""
    """header, query: the header or parameter; basic: the user; oauth2: the client's id."""

    secret: str = field(default="", repr=False)
    token_url: str = ""
    scope: str = ""
    audience: str = ""
    in_body: bool = False
    """oauth2: the id and secret are sent in the body of the token request instead of its header."""


@dataclass(frozen=True)
class Pages:
    """Pagination of the API."""

    style: str = "none"
    parameter: str = "page"
    first: int = 1
    size: int = 100
    size_parameter: str = ""
    next: str = ""


@dataclass(frozen=True)
class Limits:
    """Limits of size, time and retries."""

    answer_bytes: int = 32 << 20
    pages: int = 100_000
    call_seconds: float = 60.0
    attempts: int = 6
    longest_wait: float = 300.0
    """The longest Retry-After time in seconds that is accepted."""

    calls_per_second: float = 0.0
    """Over all partitions; 0 for unlimited."""


@dataclass(frozen=True)
class Proxy:
    """The egress proxy: an HTTP proxy with CONNECT."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True)
class RequestOptions:
    """The complete configuration of a reader."""

    base: str
    """The base URL of the connection. Only its origin is called, besides the token URL."""

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
    """The number of partitions read in parallel."""

    until: float = 0.0
    """The deadline in seconds since 1970; 0 for none."""

    pace_file: str = ""
    """A file with which the tasks on a machine share the rate limit; without it, each task uses its share."""

    proxy: Proxy | None = None
    certificates: str = ""
    """Additional trusted certificate authorities in PEM format."""
