"""The key file of an installation."""

from headgate.kit.key_file import KeyFile
from headgate.settings.settings import Settings

KEY_FILE = "keys.json"


def key_file(settings: Settings) -> KeyFile:
    """The key file of this installation."""
    return KeyFile(settings.data_dir / KEY_FILE)
