"""All versions that change together, and the checksums of fetched jars."""

from dataclasses import dataclass
from importlib import metadata

PYSPARK = "4.1.4"
"""Also pinned in pyproject.toml; a test compares them."""

PYICEBERG = "0.12"
ICEBERG = "1.12.0"
SCALA = "2.13"
JDK = (17, 21)
JDK_TARGET = 17
"""The target release of the guard: the older of the two, so that its jar runs on both."""


@dataclass(frozen=True)
class Artifact:
    """A jar by its Maven coordinates and its SHA-256 sum."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        """In the format of Spark's `--packages`."""
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        """Its file name in Maven repositories."""
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

SPARK_AVRO = Artifact(
    "org.apache.spark",
    f"spark-avro_{SCALA}",
    # The newest published 4.1 release; it works with 4.1.4's own Avro.
    "4.1.1",
    "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
)
POSTGRESQL = Artifact(
    "org.postgresql", "postgresql", "42.7.14", "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c"
)
MARIADB = Artifact(
    "org.mariadb.jdbc",
    "mariadb-java-client",
    "3.5.11",
    "42604178b9e57ec08ee0035079961516f086e455d0141f0b22c6eff29fb2fff4",
)
PLATFORM = (SPARK_AVRO, POSTGRESQL, MARIADB)
"""Additional jars for the platform's own steps; members' SQL does not get them."""


def complaints() -> list[str]:
    """Installed versions that differ from the tested ones, each with what to do."""
    result = []
    for package, wanted in (("pyspark", PYSPARK), ("pyiceberg", PYICEBERG)):
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            result.append(f"{package} is not installed; install {package} {wanted}")
            continue
        if version != wanted and not version.startswith(f"{wanted}."):
            result.append(f"{package} {version} is installed, Headgate needs {wanted}; install {package} {wanted}")
    return result
