"""The jars of Iceberg's catalog tests, by coordinates and SHA-256 sum; what Spark brings is taken from there."""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from headgate.execution.spark import java
from headgate.execution.spark.jars import BadJar, check
from headgate.execution.spark.versions import Artifact

ICEBERG = "1.11.0"
"""The newest version whose tests are published; the tests and the client under test are of one version."""


@dataclass(frozen=True)
class Tests(Artifact):
    """The tests of an artifact."""

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}-tests.jar"


_ICEBERG = "org.apache.iceberg"
ARTIFACTS = (
    Artifact(_ICEBERG, "iceberg-api", ICEBERG, "f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a"),
    Artifact(_ICEBERG, "iceberg-core", ICEBERG, "53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090"),
    Artifact(_ICEBERG, "iceberg-common", ICEBERG, "b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d"),
    Artifact(
        _ICEBERG, "iceberg-bundled-guava", ICEBERG, "396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1"
    ),
    Tests(_ICEBERG, "iceberg-api", ICEBERG, "5ba3fda757ce34f12604f1451c72fbfb583d870f43fa8df9ae4d9a329bbe7a8b"),
    Tests(_ICEBERG, "iceberg-core", ICEBERG, "4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3"),
    Artifact(
        "com.github.ben-manes.caffeine",
        "caffeine",
        "2.9.3",
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b",
    ),
    Artifact(
        "org.apache.httpcomponents.client5",
        "httpclient5",
        "5.6.1",
        "1e3d8444c3c27772e4b9d42a790f06b3345a8ece4fd16d00981f2f2460e1e772",
    ),
    Artifact(
        "org.apache.httpcomponents.core5",
        "httpcore5",
        "5.4",
        "cec2981fa7f520efb63f0787c24f10af2679e31f9f75c448c4dde40a3ae8100d",
    ),
    Artifact(
        "org.apache.httpcomponents.core5",
        "httpcore5-h2",
        "5.4",
        "2e0f4ace15db2d1609c2b06eca6012e7582afe4a99ad8d15073f62dd8edb3460",
    ),
    Artifact(
        "org.junit.platform",
        "junit-platform-console-standalone",
        "1.14.4",
        "7c6968cbcaf4301c729f202b23b7d736c5d88be625fc7d27ad5d746146a8bc28",
    ),
    Artifact(
        "org.assertj", "assertj-core", "3.27.7", "c4a445426c3c2861666863b842cc4ec7bbb1c4226fefd370b6d2fe83d6c4ff0f"
    ),
    Artifact(
        "net.bytebuddy", "byte-buddy", "1.18.3", "d78396e3c5bce3f2865c9186647481e5589d34cacc632484715b686108d17c66"
    ),
)


def fetch(folder: Path) -> list[Path]:
    """These jars, each the pinned one, in a folder that keeps them; by the resolver in Spark's own jars.

    Spark's `--packages` knows no tests of an artifact, so the resolver is asked directly.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(not (folder / one.file).exists() for one in ARTIFACTS):
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
            _resolve(Path(work))
            for one in ARTIFACTS:
                check(Path(work, one.file), one)
                shutil.move(Path(work, one.file), folder / one.file)
    for one in ARTIFACTS:
        check(folder / one.file, one)
    return [folder / one.file for one in ARTIFACTS]


def _resolve(work: Path) -> None:
    wanted = "".join(_dependency(name) for name in sorted({(one.group, one.name, one.version) for one in ARTIFACTS}))
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="headgate" module="catalog-tests"/><configurations><conf name="default"/></configurations>'
        f'<dependencies defaultconf="default->master">{wanted}</dependencies></ivy-module>'
    )
    pattern = f"{work}/[artifact]-[revision](-[classifier]).[ext]"
    asked = ["-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache"), "-retrieve", pattern]
    command = [java.java(), "-Xmx256m", "-cp", f"{java.spark_jars()}/*", "org.apache.ivy.Main", *asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    lost = [one.coordinates for one in ARTIFACTS if not (work / one.file).is_file()]
    if done.returncode != 0 or lost:
        raise BadJar(f"Could not fetch {', '.join(lost) or 'the jars'}. Is there a network?\n{done.stdout[-2000:]}")


def _dependency(artifact: tuple[str, str, str]) -> str:
    group, name, version = artifact
    kinds = [isinstance(one, Tests) for one in ARTIFACTS if (one.group, one.name) == (group, name)]
    parts = "".join(
        f'<artifact name="{name}" type="jar"{" m:classifier=" + chr(34) + "tests" + chr(34) if tests else ""}/>'
        for tests in kinds
    )
    return f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false">{parts}</dependency>'
