"""Settings of the Spark servers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from headgate.kit.patterns import TextPattern
from headgate.settings.group import MEMORY, Group


class SparkSettings(Group):
    """The Spark servers of a worker."""

    member_url: str | None = Field(
        None,
        description="Spark Connect server (`sc://HOST:PORT`) with the guard installed, for members' SQL. Default: the "
        "worker starts its own server.",
    )
    platform_url: str | None = Field(
        None,
        description="Spark Connect server (`sc://HOST:PORT`) for ingestion and deliveries. Members' SQL never runs on "
        "it. Default: the worker starts its own server on demand.",
    )
    memory: Annotated[str, MEMORY] | None = Field(
        None,
        description="Memory of each Spark server, such as `2g`. Default: depends on the memory of the machine.",
    )
    cores: int | None = Field(
        None, ge=1, le=1024, description="CPU cores of each Spark server. Default: all cores of the machine."
    )
    slots: int = Field(
        4,
        ge=1,
        le=64,
        description="Maximum number of statements that a worker runs at a time. Others are queued.",
    )
    prewarm: bool = Field(
        default=True,
        description="Start Spark together with the worker. Otherwise the first statement starts it and takes some "
        "seconds longer.",
    )
    sandbox: Literal["auto", "required", "off"] = Field(
        "auto",
        description="Sandbox (bubblewrap) of the Spark server for members' SQL. `auto` uses it if it is available, "
        "`required` fails without it. Without a sandbox, the server listens on loopback and requires a token.",
    )
    sandbox_uid: int = Field(
        60631,
        ge=1,
        le=2**31 - 1,
        description="User ID and group ID of programs in sandboxes when Headgate runs as root. No account is needed; "
        "use an ID that no account has. Headgate makes this user the owner of the warehouse folders `tables`, "
        "`metadata`, `staging` and `volumes`. When Headgate does not run as root, sandboxes use its own user.",
    )
    jars_dir: Path | None = Field(
        None,
        description="Folder with the required jars, for machines without internet access. Default: the jars are "
        "downloaded once.",
    )
    java_options: list[
        Annotated[str, TextPattern(r"^-[\x20-\x7e]{1,999}$", "must be a JVM option, which begins with a hyphen")]
    ] = Field(
        [], description='JVM options of each Spark process that a worker starts, such as `["-XX:+UseParallelGC"]`.'
    )
