"""Paths below the address of an HTTP connection, as streams name them."""


def check_api_path(path: str) -> None:
    """Refuse a path that leads elsewhere than below its connection's address; ValueError says why."""
    plain = path.partition("?")[0]
    if "://" in plain or path.startswith("//"):
        raise ValueError(
            "The stream's name is a URL; write only the path below the connection's address, as /v1/orders"
        )
    if {"..", "."} & set(plain.lower().replace("%2e", ".").split("/")):
        raise ValueError("The stream's name contains . or .. as a path segment; write the path without them")
