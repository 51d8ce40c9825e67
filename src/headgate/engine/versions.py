"""The one place that names the versions which move together, and the sums of the jars that are fetched."""

from dataclasses import dataclass
from importlib import metadata

PYSPARK = "4.1.4"
"""pyproject.toml pins the same; a test compares."""

PYICEBERG = "0.12"
ICEBERG = "1.12.0"
SCALA = "2.13"
JDK = (17, 21)
JDK_TARGET = 17
"""What the guard is compiled for: the older of the two, so that its jar runs on both."""


@dataclass(frozen=True)
class Artifact:
    """A jar by its Maven coordinates and its SHA-256 sum."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        """As Spark's `--packages` takes them."""
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        """The name of its file, as repositories have it."""
        return f"{self.name}-{self.version}.jar"


ICEBERG_RUNTIME = Artifact(
    "org.apache.iceberg",
    f"iceberg-spark-runtime-4.1_{SCALA}",
    ICEBERG,
    "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
)
ICEBERG_AWS = Artifact(
    "org.apache.iceberg",
    "iceberg-aws-bundle",
    ICEBERG,
    "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
)


def complaints() -> list[str]:
    """What is installed in another version than the one that was tried, each with what to do."""
    found = []
    for package, wanted in (("pyspark", PYSPARK), ("pyiceberg", PYICEBERG)):
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            found.append(f"{package} is not installed; install {package} {wanted}")
            continue
        if version != wanted and not version.startswith(f"{wanted}."):
            found.append(f"{package} {version} is installed, Headgate needs {wanted}; install {package} {wanted}")
    return found
