"""Media types and file names of downloads."""

from urllib.parse import quote

OCTETS = "application/octet-stream"
_PLAIN_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".json": "application/json",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".avro": "application/vnd.apache.avro",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
    ".tar": "application/x-tar",
}
MEDIA_TYPES = frozenset({*_PLAIN_TYPES.values(), OCTETS})
"""Media types for downloads; browsers execute none of them."""


def media_type(given: str | None, path: str) -> str:
    """The media type to store: the given one if allowed, else one by file extension, else the generic binary type."""
    named = (given or "").partition(";")[0].strip().lower()
    if named in MEDIA_TYPES and named != OCTETS:
        return named
    ending = "." + path.rpartition(".")[2].lower()
    return _PLAIN_TYPES.get(ending, OCTETS)


def safe_type(kept: str) -> str:
    """A media type that browsers do not execute."""
    return kept if kept in MEDIA_TYPES else OCTETS


def disposition(path: str) -> str:
    """The header that makes a browser save a file under its own name (RFC 6266, RFC 8187)."""
    name = path.rpartition("/")[2]
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
