"""Settings, from `headgate.toml`, the environment and defaults. Each has a description; the reference is generated."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

FILE_VARIABLE = "HEADGATE_CONFIG"
DEFAULT_FILE = "headgate.toml"
PREFIX = "HEADGATE_"


class BadSettings(ValueError):
    """A setting that cannot be used; says which, and what to do."""


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
    max_body_bytes: Annotated[
        int, Field(ge=1024, le=1 << 30, description="The largest request body that is read, in bytes.")
    ] = 2 << 20
    shutdown_seconds: Annotated[
        float, Field(ge=0, le=600, description="How long requests under way may take to end when the server stops.")
    ] = 20
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


class AuditSettings(Section):
    """What the audit log keeps."""

    reads: Annotated[
        Literal["data", "all"],
        Field(
            description="Which reads are recorded, beside all changes and refusals: reads of data, or also each look "
            "at a resource or list."
        ),
    ] = "data"


class LogSettings(Section):
    """What the processes write to standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="The least level that is written.")
    ] = "info"
    format: Annotated[Literal["json", "text"], Field(description="JSON, one object a line, or text for people.")] = (
        "text"
    )


class Settings(BaseSettings):
    """All settings of an installation."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid")

    data_dir: Annotated[
        Path,
        Field(description="The folder for the key file, the embedded database and what runs write."),
    ] = Path(".headgate")
    database: DatabaseSettings = DatabaseSettings()
    server: ServerSettings = ServerSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()

    @property
    def database_url(self) -> str:
        """The URL of the database."""
        return self.database.url or f"sqlite:///{self.data_dir.absolute()}/headgate.db"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, config_file())


def config_file() -> Path:
    """The file that settings are read from, if it exists."""
    return Path(os.environ.get(FILE_VARIABLE, DEFAULT_FILE))


def load(**overrides: Any) -> Settings:
    """The settings, or BadSettings that names each that cannot be used."""
    file = config_file()
    if FILE_VARIABLE in os.environ and not file.is_file():
        raise BadSettings(f"{FILE_VARIABLE} names {file}, which does not exist")
    try:
        _check_variables(os.environ)
        return Settings(**overrides)
    except ValidationError as error:
        raise BadSettings("\n".join(_sentence(one) for one in error.errors())) from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{file}: not TOML: {error}") from None
    except (ValueError, OSError) as error:
        raise BadSettings(str(error)) from None


def _sentence(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    variable = PREFIX + "__".join(str(part) for part in error["loc"]).upper()
    reason = "there is no such setting" if error["type"] == "extra_forbidden" else error["msg"]
    return f"{place} ({variable}): {reason}; `headgate config show` lists all settings"


def _check_variables(environ: Mapping[str, str]) -> None:
    """A misspelt variable is an error, not a setting that silently stays as it was."""
    own = {FILE_VARIABLE, f"{PREFIX}SERVER_URL", f"{PREFIX}TOKEN"}
    known = {name.upper() for name, _, _ in described(Settings)}
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in own:
            name = variable.removeprefix(PREFIX).replace("__", ".")
            if name not in known:
                raise ValueError(f"{variable}: there is no such setting; `headgate config show` lists all settings")


def described(model: type[BaseModel], prefix: str = "") -> list[tuple[str, Any, type[BaseModel]]]:
    """Every setting: its dotted name, its field, and the section it belongs to."""
    found: list[tuple[str, Any, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += described(inner, f"{prefix}{name}.")
        else:
            found.append((prefix + name, field, model))
    return found
