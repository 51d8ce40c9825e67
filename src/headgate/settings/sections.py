"""The sections of the settings. Each setting has a description; the reference is generated from them."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from headgate.kit.patterns import Form

_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*/?")
_MEMORY = Form("^[1-9][0-9]*[mg]$", "must be a number of megabytes or gigabytes, such as 512m or 2g")


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(extra="forbid")


class DatabaseSettings(Section):
    """Where metadata is kept."""

    url: Annotated[
        str | None,
        Field(
            description="An `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME` URL. "
            "Left out, it is the file `headgate.db` in `data_dir`."
        ),
    ] = None
    pool_size: Annotated[int, Field(ge=1, le=200, description="Connections that each server process keeps.")] = 20

    @field_validator("url")
    @classmethod
    def _known(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("sqlite://", "postgresql://")):
            raise ValueError("must start with sqlite:// or postgresql://")
        if url is not None and url.startswith("postgresql://"):
            try:
                named = urlsplit(url).port is not None or bool(urlsplit(url).hostname)
            except ValueError:
                named = False
            if not named:
                raise ValueError("write a database as postgresql://USER:PASSWORD@HOST:PORT/NAME")
        return url


class ServerSettings(Section):
    """How the server listens."""

    host: Annotated[str, Field(description="The address to listen on; 0.0.0.0 for all of them.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="The port to listen on; 0 picks a free one.")] = 8420
    processes: Annotated[int, Field(ge=1, le=64, description="How many server processes share the port.")] = 1
    public_url: Annotated[
        str | None,
        Field(description="The address under which people reach the server, such as `https://data.example.com`."),
    ] = None
    trusted_proxies: Annotated[
        list[str],
        Field(
            description="Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are "
            "believed."
        ),
    ] = []
    max_body_bytes: Annotated[
        int, Field(ge=1024, le=1 << 30, description="The largest request body that is read, in bytes.")
    ] = 2 << 20
    shutdown_seconds: Annotated[
        float, Field(ge=0, le=600, description="How long requests under way may take to end when the server stops.")
    ] = 20
    restart_seconds: Annotated[
        float,
        Field(
            ge=0.1,
            le=600,
            description="How long a process that died again and again waits at most before it is started anew.",
        ),
    ] = 30
    metrics: Annotated[
        Literal["open", "token", "off"],
        Field(
            description="Who may read `/metrics`: anyone who reaches the server, whoever sends `metrics_token` as a "
            "bearer token, or nobody. Metrics name routes and statuses, never members or resources."
        ),
    ] = "open"
    metrics_token: Annotated[
        SecretStr | None, Field(description="The bearer token for `/metrics` when `metrics` is `token`.")
    ] = None

    @field_validator("public_url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
                raise ValueError("write an address such as https://data.example.com")
        return url

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: list[str]) -> list[str]:
        for proxy in proxies:
            ipaddress.ip_network(proxy, strict=False)
        return proxies

    @model_validator(mode="after")
    def _has_token(self) -> Self:
        if self.metrics == "token" and self.metrics_token is None:
            raise ValueError("metrics is `token`, so set metrics_token too")
        return self


class SignInSettings(Section):
    """Passwords, sessions and links."""

    idle_hours: Annotated[
        float, Field(gt=0, le=720, description="How long a session may stay unused before it ends, in hours.")
    ] = 12
    session_days: Annotated[float, Field(gt=0, le=365, description="How long a session may last in all, in days.")] = 14
    link_minutes: Annotated[
        float, Field(gt=0, le=1440, description="How long a sign-in or password link can be used, in minutes.")
    ] = 30
    invitation_days: Annotated[
        float, Field(gt=0, le=90, description="How long an invitation can be accepted, in days.")
    ] = 7
    failures_per_account: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description="Wrong passwords in a quarter of an hour, after which an account takes no more from browsers "
            "that have not signed in to it before.",
        ),
    ] = 10
    failures_per_address: Annotated[
        int, Field(ge=1, le=100_000, description="Wrong passwords in a quarter of an hour from one network address.")
    ] = 50


class MailSettings(Section):
    """The relay that mail goes out by. Without one, whoever invites gets the link to hand over."""

    host: Annotated[str | None, Field(description="The SMTP server; left out, no mail is sent.")] = None
    port: Annotated[int, Field(ge=1, le=65535, description="Its port.")] = 587
    security: Annotated[
        Literal["starttls", "tls", "none"],
        Field(description="How the connection is protected; `none` is for a relay on the same machine."),
    ] = "starttls"
    username: Annotated[str | None, Field(description="The user name at the relay, if it asks for one.")] = None
    password: Annotated[SecretStr | None, Field(description="The password at the relay.")] = None
    sender: Annotated[str, Field(description="The address that mail comes from.")] = "headgate@localhost"
    timeout_seconds: Annotated[float, Field(gt=0, le=300, description="How long the relay may take to answer.")] = 20


class OutgoingSettings(Section):
    """Calls to addresses that members give, such as webhooks."""

    allow: Annotated[
        list[str],
        Field(
            description="Host names, addresses or networks to which calls may go although they are private, loopback, "
            'link-local or otherwise not public, such as `["hooks.internal", "10.1.0.0/16"]`.'
        ),
    ] = []
    timeout_seconds: Annotated[float, Field(gt=0, le=300, description="How long such a call may take.")] = 20
    max_response_bytes: Annotated[
        int, Field(ge=1024, le=1 << 30, description="The largest answer that is read, in bytes.")
    ] = 10 << 20


class WarehouseSettings(Section):
    """Where the lakehouse keeps its bytes."""

    url: Annotated[
        str | None,
        Field(
            description="A folder (`file:///PATH`) or a bucket (`s3://BUCKET/PREFIX`). "
            "Left out, it is the folder `warehouse` in `data_dir`."
        ),
    ] = None
    external_engines: Annotated[
        Literal["off", "same-host"],
        Field(
            description="Whether engines other than Headgate's own may load tables of a warehouse in a folder. There, "
            "the operating system's user is the only guard of the files: `same-host` trusts every program that runs as "
            "a user who can read them. A warehouse in a bucket does not need this."
        ),
    ] = "off"
    requested_location: Annotated[
        Literal["ignore", "refuse"],
        Field(
            description="What happens to the location that a client asks for when it creates or replaces a table. The "
            "catalog gives every table its own: `ignore` creates the table there, `refuse` answers with an error."
        ),
    ] = "ignore"
    keep_snapshots: Annotated[int, Field(ge=1, le=100_000, description="How many snapshots a table keeps.")] = 200
    max_commit_bytes: Annotated[
        int, Field(ge=1024, le=1 << 30, description="The largest request that the catalog takes, in bytes.")
    ] = 32 << 20
    deleted_days: Annotated[
        float, Field(ge=0, le=3650, description="How long what was deleted can be restored, in days.")
    ] = 7
    max_file_bytes: Annotated[int, Field(ge=1, description="The largest file that a volume takes, in bytes.")] = (
        10 << 30
    )
    upload_hours: Annotated[
        float, Field(gt=0, le=720, description="How long an upload that was begun can be resumed, in hours.")
    ] = 24

    s3_endpoint: Annotated[
        str | None,
        Field(
            description="The address of an S3-compatible store, such as `https://minio.internal:9000`; engines "
            "reach it by the same. Left out, it is Amazon's in `s3_region`."
        ),
    ] = None
    s3_region: Annotated[
        str,
        Form("^[a-z0-9-]{1,40}$", "must be a region: lowercase letters, digits and hyphens, such as eu-central-1"),
        Field(description="The bucket's region, which signatures name."),
    ] = "us-east-1"
    s3_access_key_id: Annotated[
        str | None, Field(description="The id of the key by which the server reaches the bucket.")
    ] = None
    s3_secret_access_key: Annotated[SecretStr | None, Field(description="The secret of that key.")] = None
    s3_path_style: Annotated[
        bool,
        Field(
            description="Whether the bucket is named in the path (`HOST/BUCKET/…`), as most stores but Amazon's do, "
            "and not in the host (`BUCKET.HOST/…`)."
        ),
    ] = False
    s3_access: Annotated[
        Literal["signing", "credentials"],
        Field(
            description="How other engines reach a table's files: the server signs each request after asking whether "
            "the member may (`signing`), or they get keys for that table's files which end by themselves "
            "(`credentials`, for engines that cannot have requests signed, such as Trino and DuckDB)."
        ),
    ] = "signing"
    s3_role_arn: Annotated[
        str | None, Field(description="The role that such keys are for; `credentials` needs it.")
    ] = None
    s3_sts_endpoint: Annotated[
        str | None,
        Field(
            description="The address of the service (STS) that gives such keys. Left out, it is Amazon's in "
            "`s3_region`, or `s3_endpoint` if that is set."
        ),
    ] = None
    s3_credentials_minutes: Annotated[
        int,
        Field(
            ge=15,
            le=720,
            description="How long such keys last, in minutes: so long may an engine reach a table's files after the "
            "right to it was taken away.",
        ),
    ] = 15

    @field_validator("s3_endpoint", "s3_sts_endpoint")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None and not _ADDRESS.fullmatch(url):
            raise ValueError("write an address such as https://minio.internal:9000, with nothing after it")
        return url

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        if self.url is not None and self.url.startswith("s3://"):
            if not self.s3_access_key_id or self.s3_secret_access_key is None:
                raise ValueError("a bucket needs s3_access_key_id and s3_secret_access_key; set both")
            if self.s3_access == "credentials" and not self.s3_role_arn:
                raise ValueError("s3_access is `credentials`, so set s3_role_arn too")
        return self

    @field_validator("url")
    @classmethod
    def _known(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            is_folder = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
            if not is_folder and not _BUCKET.fullmatch(url):
                raise ValueError("write a folder as file:///PATH or a bucket as s3://BUCKET/PREFIX")
        return url


class SparkSettings(Section):
    """The Spark servers that run the data work."""

    member_url: Annotated[
        str | None,
        Field(
            description="A guarded Spark Connect server (`sc://HOST:PORT`) for members' SQL. "
            "Left out, the worker starts one."
        ),
    ] = None
    platform_url: Annotated[
        str | None,
        Field(
            description="A Spark Connect server for the platform's own steps, which no member's SQL reaches. "
            "Left out, the worker starts one when it is needed."
        ),
    ] = None
    memory: Annotated[
        Annotated[str, _MEMORY] | None,
        Field(description="Memory of each server, such as `2g`. Left out, by the machine's."),
    ] = None
    cores: Annotated[int | None, Field(ge=1, le=1024, description="Cores of each server. Left out, all of them.")] = (
        None
    )
    slots: Annotated[
        int, Field(ge=1, le=64, description="Statements that a worker runs at a time; more of them wait.")
    ] = 4
    prewarm: Annotated[
        bool,
        Field(
            description="Whether a worker starts Spark as soon as it starts itself, or when the first statement comes, "
            "which then waits some seconds longer."
        ),
    ] = True
    sandbox: Annotated[
        Literal["auto", "required", "off"],
        Field(
            description="Whether the server for members' SQL runs in a sandbox (bubblewrap): if the machine has it, "
            "always, or never. Without one, it listens on loopback and asks for a key."
        ),
    ] = "auto"
    sandbox_uid: Annotated[
        int,
        Field(
            ge=1,
            le=2**31 - 1,
            description="The user and group id that programs in sandboxes run as when Headgate is started as root. "
            "It needs no account; choose an id that nobody has. Headgate gives the warehouse folders `tables`, "
            "`metadata`, `staging` and `volumes` to it. Started by another user, sandboxes run as that user.",
        ),
    ] = 60631
    jars_dir: Annotated[
        Path | None,
        Field(
            description="A folder with the jars, for machines that cannot fetch them. Left out, they are fetched once."
        ),
    ] = None
    java_options: Annotated[
        list[Annotated[str, Form(r"^-[\x20-\x7e]{1,999}$", "must be an option of Java: it begins with a hyphen")]],
        Field(description='Options for the Java of each Spark that a worker starts, such as `["-XX:+UseParallelGC"]`.'),
    ] = []


class NotebookSettings(Section):
    """Notebooks: each run of one has processes, a Spark and a sandbox of its own."""

    mode: Annotated[
        Literal["sandbox", "trusted"],
        Field(
            description="Where notebooks run: in a sandbox (bubblewrap), and not at all on a machine without one; or, "
            "as `trusted`, outside of it. There, whoever writes a notebook can do on the worker's machine what the "
            "worker can: read every table, the keys and the database."
        ),
    ] = "sandbox"
    memory: Annotated[
        Annotated[str, _MEMORY] | None,
        Field(
            description="Memory that all processes of a notebook may hold together, such as `4g`, and `2g` at least. "
            "Left out, by the machine's: twice what a Spark server has, and `1g`.",
        ),
    ] = None
    processes: Annotated[int, Field(ge=10, le=10_000, description="Processes that a notebook may have.")] = 200
    disk_bytes: Annotated[
        int,
        Field(
            ge=64 << 20,
            description="Bytes that a notebook may hold on disk: what it saves, and what Spark and Python put there.",
        ),
    ] = 20 << 30
    output_bytes: Annotated[
        int,
        Field(
            ge=1024,
            le=256 << 20,
            description="Bytes of what its cells print, show and plot that are kept with a run; the rest is left out.",
        ),
    ] = 10 << 20

    @field_validator("memory")
    @classmethod
    def _is_enough(cls, memory: str | None) -> str | None:
        if memory is not None and int(memory[:-1]) << (10 if memory.endswith("g") else 0) < 2 << 10:
            raise ValueError("Spark and Python need 2g together")
        return memory


class LogSettings(Section):
    """What the processes write to standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="The least level that is written.")
    ] = "info"
    format: Annotated[Literal["json", "text"], Field(description="JSON, one object a line, or text for people.")] = (
        "text"
    )
