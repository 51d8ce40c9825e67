"""Selects tables to compact: those with many small files in one partition."""

from collections import Counter
from typing import Any

from headgate.lakehouse.catalog.files import Root
from headgate.lakehouse.catalog.manifests import entries_of, manifests_of
from headgate.settings.maintenance import TARGET, MaintenanceSettings

HASHED = "write.object-storage.enabled"
SMALL = 0.75
"""Fraction of the target size below which a file is small; Iceberg's default."""
_DATA, _DELETED = 0, 2


def target_bytes(properties: dict[str, str], settings: MaintenanceSettings) -> int:
    """The target file size of a table."""
    text = properties.get(TARGET, "")
    own = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    return own or settings.compact_target_mib << 20


def small_files(root: Root, table: Any, settings: MaintenanceSettings) -> int:
    """The number of small files worth compacting; 0 if the table needs no compaction.

    Files of a partition share a folder, unless the table uses object storage layout; then all of them count as one
    partition.
    """
    current = table.current_snapshot()
    if current is None:
        return 0
    limit = target_bytes(table.properties, settings) * SMALL
    is_spread = table.properties.get(HASHED, "").lower() == "true"
    counts: Counter[str] = Counter()
    for manifest in manifests_of(root, current.manifest_list):
        for entry in entries_of(root, manifest):
            file = entry.data_file
            if int(entry.status) != _DELETED and int(file.content) == _DATA and file.file_size_in_bytes < limit:
                counts["" if is_spread else file.file_path.rpartition("/")[0]] += 1
    return sum(count for count in counts.values() if count >= settings.compact_min_files)
