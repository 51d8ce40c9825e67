"""Run Iceberg's own catalog tests against an installation of our own: `make catalog-tests`."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from headgate.execution.spark import java
from headgate.execution.spark.jars import default_folder
from tests.lakehouse.catalog.conformance import artifacts
from tests.lakehouse.catalog.conformance.outcomes import differences, read_refused, read_report
from tests.support.installation import installed

HERE = Path(__file__).parent
CLASSES = ("HeadgateCatalogTests",)
"""The test classes in `java/`; another one is added here, and what it is refused in refused.txt."""


def main() -> int:
    """Run them; 0 if exactly those fail that refused.txt lists, for the reasons that it gives."""
    jars = artifacts.fetch(default_folder().parent / "catalog-tests")
    with tempfile.TemporaryDirectory(prefix="headgate-catalog-tests-") as folder:
        work = Path(folder)
        paths = os.pathsep.join([str(work / "classes"), *map(str, jars), f"{java.spark_jars()}/*"])
        sources = [str(file) for file in sorted((HERE / "java").glob("*.java"))]
        compiler = [java.program("javac"), "-nowarn", "-d", str(work / "classes"), "-cp", paths, *sources]
        subprocess.run(compiler, check=True)
        report = _run(work, paths)
        outcomes = read_report(report)
    wrong = differences(outcomes, read_refused(HERE / "refused.txt"))
    counts = Counter(one.result for one in outcomes.values())
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} do not apply\n")
    sys.stdout.write("These are not the expected results\n" if wrong else "These are the expected results\n")
    return 1 if wrong else 0


def _run(work: Path, paths: str) -> Path:
    """Run the tests with the token of the owner of a new installation; the report."""
    own: dict[str, Any] = {"HEADGATE_WAREHOUSE__EXTERNAL_ENGINES": "same-host"}
    (work / "data").mkdir()
    with installed(work / "data", **own) as installation:
        who = ["--name", "Olga", "--email", "olga@example.org", "--password-stdin"]
        made = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "init", *who],
            input="a long passphrase for the tests\n",
            env=installation.environment,
            cwd=installation.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise RuntimeError(made.stderr)
        token = installation.token("Olga")
        address = installation.up()
        selected = [f"--select-class={name}" for name in CLASSES]
        command = [
            java.java(),
            "-Xmx768m",
            "-XX:TieredStopAtLevel=1",
            f"-Dheadgate.uri={address}/iceberg",
            "-cp",
            paths,
        ]
        launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", *selected, "--details=none"]
        done = subprocess.run(
            [*command, *launcher, "--disable-banner", f"--reports-dir={work / 'reports'}"],
            env={**os.environ, "HEADGATE_TOKEN": token},
            capture_output=True,
            text=True,
            check=False,
        )
        report = work / "reports" / "TEST-junit-jupiter.xml"
        if not report.is_file():
            raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
        installation.stop()
        return report


if __name__ == "__main__":
    sys.exit(main())
