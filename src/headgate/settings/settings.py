"""Settings, from `headgate.toml`, the environment and defaults. Each has a description; the reference is generated."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from headgate.kit import crash_points as crash
from headgate.settings.audit import AuditSettings
from headgate.settings.external_systems import DeliveriesSettings, SourcesSettings
from headgate.settings.maintenance import MaintenanceSettings
from headgate.settings.runs import RunsSettings
from headgate.settings.sections import (
    DatabaseSettings,
    LogSettings,
    MailSettings,
    NotebookSettings,
    OutgoingSettings,
    ServerSettings,
    SignInSettings,
    SparkSettings,
    WarehouseSettings,
)
from headgate.settings.sql import SqlSettings

FILE_VARIABLE = "HEADGATE_CONFIG"
DEFAULT_FILE = "headgate.toml"
PREFIX = "HEADGATE_"


class BadSettings(ValueError):
    """A setting that cannot be used; says which, and what to do."""


class Settings(BaseSettings):
    """All settings of an installation."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid")

    data_dir: Annotated[
        Path,
        Field(description="The folder for the key file, the embedded database and what runs write."),
    ] = Path(".headgate")
    database: DatabaseSettings = DatabaseSettings()
    server: ServerSettings = ServerSettings()
    sign_in: SignInSettings = SignInSettings()
    mail: MailSettings = MailSettings()
    outgoing: OutgoingSettings = OutgoingSettings()
    sources: SourcesSettings = SourcesSettings()
    deliveries: DeliveriesSettings = DeliveriesSettings()
    warehouse: WarehouseSettings = WarehouseSettings()
    spark: SparkSettings = SparkSettings()
    sql: SqlSettings = SqlSettings()
    notebooks: NotebookSettings = NotebookSettings()
    runs: RunsSettings = RunsSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()

    @property
    def database_url(self) -> str:
        """The URL of the database."""
        return self.database.url or f"sqlite:///{self.data_dir.absolute()}/headgate.db"

    @property
    def warehouse_url(self) -> str:
        """The URL of the warehouse's root, without a slash at its end."""
        return (self.warehouse.url or f"file://{self.data_dir.absolute()}/warehouse").rstrip("/")

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
    if FILE_VARIABLE in os.environ and not file.exists():
        raise BadSettings(f"{FILE_VARIABLE} names {file}, which does not exist")
    if file.exists() and not file.is_file():
        raise BadSettings(f"{file} is not a file; settings are read from a file of this name")
    try:
        _check_variables(os.environ)
        return Settings(**overrides)
    except ValidationError as error:
        raise BadSettings("\n".join(_sentence(details) for details in error.errors())) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{file}: not TOML: {error}") from None
    except (ValueError, OSError) as error:
        raise BadSettings(str(error)) from None


def _sentence(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    variable = PREFIX + "__".join(str(part) for part in error["loc"]).upper()
    where = f"{place} ({variable}" + (f", or {config_file()})" if config_file().is_file() else ")")
    if error["type"] == "extra_forbidden":
        return f"{where}: there is no such setting{_instead(place)}"
    if error["type"] == "model_type":
        return f"{where}: this is a group of settings; write [{place}], and its settings below"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"


def _instead(name: str) -> str:
    """What was meant, if something is like it."""
    close = difflib.get_close_matches(name.lower(), [known_name for known_name, _, _ in described(Settings)], 1, 0.7)
    return f"; did you mean {close[0]}?" if close else "; docs/reference/settings.md lists all of them"


def _check_variables(environ: Mapping[str, str]) -> None:
    """A misspelt variable is an error, not a setting that silently stays as it was."""
    own = {FILE_VARIABLE, f"{PREFIX}SERVER_URL", f"{PREFIX}TOKEN", f"{PREFIX}WORKER_TOKEN", crash.VARIABLE}
    known = {name.upper() for name, _, _ in described(Settings)}
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in own:
            name = variable.removeprefix(PREFIX).replace("__", ".")
            if name not in known:
                raise ValueError(f"{variable}: there is no such setting{_instead(name)}")


def described(model: type[BaseModel], prefix: str = "") -> list[tuple[str, Any, type[BaseModel]]]:
    """Every setting: its dotted name, its field, and the section it belongs to."""
    fields: list[tuple[str, Any, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            fields += described(inner, f"{prefix}{name}.")
        else:
            fields.append((prefix + name, field, model))
    return fields
