"""All settings: read from the environment, then `headgate.toml`, then defaults."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from headgate.kit import crash_points
from headgate.settings.audit import AuditSettings
from headgate.settings.database import DatabaseSettings
from headgate.settings.external_systems import DeliveriesSettings, SourcesSettings
from headgate.settings.log import LogSettings
from headgate.settings.mail import MailSettings
from headgate.settings.maintenance import MaintenanceSettings
from headgate.settings.notebooks import NotebookSettings
from headgate.settings.outgoing import OutgoingSettings
from headgate.settings.runs import RunsSettings
from headgate.settings.server import ServerSettings
from headgate.settings.sign_in import SignInSettings
from headgate.settings.spark import SparkSettings
from headgate.settings.sql import SqlSettings
from headgate.settings.warehouse import WarehouseSettings

FILE_VARIABLE = "HEADGATE_CONFIG"
DEFAULT_FILE = "headgate.toml"
PREFIX = "HEADGATE_"


class BadSettings(ValueError):
    """An invalid setting. The message names the setting and the fix."""


class Settings(BaseSettings):
    """All settings of an installation."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid")

    data_dir: Path = Field(
        Path(".headgate"),
        description="Folder for the key file, the SQLite database, the warehouse and temporary files of runs.",
    )
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
        """The URL of the warehouse, without a trailing slash."""
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
    """The path of the configuration file, which may not exist."""
    return Path(os.environ.get(FILE_VARIABLE, DEFAULT_FILE))


def load(**overrides: Any) -> Settings:
    """Load the settings. Raises BadSettings with one line for each invalid setting."""
    file = config_file()
    if FILE_VARIABLE in os.environ and not file.exists():
        raise BadSettings(f"{FILE_VARIABLE}: the file {file} does not exist")
    if file.exists() and not file.is_file():
        raise BadSettings(f"{file} is not a file; rename it, or set {FILE_VARIABLE} to a configuration file")
    try:
        _check_variables(os.environ)
        return Settings(**overrides)
    except ValidationError as error:
        raise BadSettings("\n".join(_sentence(details) for details in error.errors())) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{file} is not valid TOML: {error}") from None
    except (ValueError, OSError) as error:
        raise BadSettings(str(error)) from None


def _sentence(error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"])
    variable = PREFIX + "__".join(str(part) for part in error["loc"]).upper()
    label = f"{name} ({variable}" + (f", or {config_file()})" if config_file().is_file() else ")")
    if error["type"] == "extra_forbidden":
        return f"{label}: unknown setting{_suggestion(name)}"
    if error["type"] == "model_type":
        return f"{label}: {name} is a group of settings; write a table [{name}] with its settings"
    return f"{label}: {error['msg'].removeprefix('Value error, ')}"


def _suggestion(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), [known for known, _, _ in described(Settings)], 1, 0.7)
    return f"; did you mean {close[0]}?" if close else "; docs/reference/settings.md lists all settings"


def _check_variables(environ: Mapping[str, str]) -> None:
    """Reject unknown variables: a misspelt variable must not be ignored."""
    own = {FILE_VARIABLE, f"{PREFIX}SERVER_URL", f"{PREFIX}TOKEN", f"{PREFIX}WORKER_TOKEN", crash_points.VARIABLE}
    known = {name.upper() for name, _, _ in described(Settings)}
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in own:
            name = variable.removeprefix(PREFIX).replace("__", ".")
            if name not in known:
                raise ValueError(f"{variable}: unknown setting{_suggestion(name)}")


def described(model: type[BaseModel], prefix: str = "") -> list[tuple[str, Any, type[BaseModel]]]:
    """Every setting: its dotted name, its field, and its group."""
    fields: list[tuple[str, Any, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            fields += described(inner, f"{prefix}{name}.")
        else:
            fields.append((prefix + name, field, model))
    return fields
