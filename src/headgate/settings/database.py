"""Settings of the metadata database."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from headgate.settings.group import Group


class DatabaseSettings(Group):
    """The metadata database."""

    url: str | None = Field(
        None,
        description="URL of the metadata database: `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`. "
        "Default: SQLite, in the file `headgate.db` in `data_dir`. Several hosts need PostgreSQL.",
    )
    pool_size: int = Field(
        20, ge=1, le=200, description="Maximum number of open database connections for each server process."
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("sqlite://", "postgresql://")):
            raise ValueError("the database URL must start with sqlite:// or postgresql://")
        if url is not None and url.startswith("postgresql://") and not _has_host(url):
            raise ValueError("the database URL must have the form postgresql://USER:PASSWORD@HOST:PORT/NAME")
        return url


def _has_host(url: str) -> bool:
    try:
        return urlsplit(url).port is not None or bool(urlsplit(url).hostname)
    except ValueError:
        return False
