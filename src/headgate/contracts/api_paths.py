"""URL paths of streams, relative to the base URL of an HTTP connection."""


def check_api_path(path: str) -> None:
    """Reject a path that leads outside of the base URL; raises ValueError with the reason."""
    plain = path.partition("?")[0]
    if "://" in plain or path.startswith("//"):
        raise ValueError(
            "The stream's name is a URL; write only the path below the connection's address, as /v1/orders"
        )
    if {"..", "."} & set(plain.lower().replace("%2e", ".").split("/")):
        raise ValueError("The stream's name contains . or .. as a path segment; write the path without them")
