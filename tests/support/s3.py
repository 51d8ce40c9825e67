"""An S3-compatible server for tests: S3Proxy, which verifies signatures, signed headers and the payload's hash.

It is fetched once, by coordinates and pinned sums, with the Ivy that pyspark brings: a JDK is all that it needs.
"""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.execution.spark import java
from headgate.execution.spark.jars import default_folder
from headgate.execution.spark.versions import Artifact
from headgate.settings.settings import Settings

BUCKET = "lake"
REGION = "eu-central-1"
KEY_ID, SECRET = "AKIATESTOFHEADGATE", "only-the-server-has-this-key"

_AWS, _JACKSON = "software.amazon.awssdk", "tools.jackson"
JARS = (
    Artifact("org.gaul", "s3proxy", "4.1.1", "4e52ab79a864927d471083813911a579c39f1c89a948a709ee8d42ce295ba392"),
    Artifact("args4j", "args4j", "2.37", "5a13b0f7ff519183e55b8f453b8faaa23b92ccf0443f1fac515fedf2246bdc18"),
    Artifact("ch.qos.logback", "logback-classic", "1.6.3", "beebede8db065fe1b72909ecc66bb49acda618901635d86c25fce14a5915e37e"),
    Artifact("ch.qos.logback", "logback-core", "1.6.3", "a6967a28c8b086dee75a694d2f6fb8830c71153539866d7d8af065c9b6df91e0"),
    Artifact("com.fasterxml.jackson.core", "jackson-annotations", "2.22", "21ddb598807d3a51a876704eb979d9296e1c6a6f47ab1826ff88c6d6a127a2d0"),
    Artifact("com.fasterxml.woodstox", "woodstox-core", "7.2.1", "95d5a916ab82aca0a8c4ca8a2cf7e4fd7eab18817c24f1fdc7738e15d2a58845"),
    Artifact("com.google.guava", "failureaccess", "1.0.3", "cbfc3906b19b8f55dd7cfd6dfe0aa4532e834250d7f080bd8d211a3e246b59cb"),
    Artifact("com.google.guava", "guava", "33.7.1-jre", "796d8e28ac64e83a47c4c5935a8fecc4682650a04bbdead738ef0f5a3a0e6c46"),
    Artifact("jakarta.servlet", "jakarta.servlet-api", "6.0.0", "c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef"),
    Artifact("org.codehaus.woodstox", "stax2-api", "4.3.0", "7c805f36129ea9fa42b696093b7ae1eb20bb6ccec65c8280d6f33db5609ca5e1"),
    Artifact("org.slf4j", "slf4j-api", "2.0.19", "e91ff6d720609e7a194ffe758c3ed5c84e798617ae07b0a0f6a4fe229741b4bb"),
    Artifact(_AWS, "aws-core", "2.54.13", "7a740cec8f448a0f93c11716b2dad421cb15d190c37031be0abb0814ff48d746"),
    Artifact(_AWS, "checksums", "2.54.13", "62e0c7a45099f9dcef85b4b5f0b94357872c8148e427411722e1edc6f1b442da"),
    Artifact(_AWS, "checksums-spi", "2.54.13", "bdfbad7068c2fed0991f01a58d277d72c400334456499199998464d7b241eedc"),
    Artifact(_AWS, "http-client-spi", "2.54.13", "456e83b43f66142035decd008efcf4965173a0a73ad891e8b16873cc98b7f2fc"),
    Artifact(_AWS, "s3", "2.54.13", "ce961e038e53d18516b58f5e13c2e7bc53f9b670bfbb8182818fc52d3007946a"),
    Artifact(_AWS, "sdk-core", "2.54.13", "9a9e73a317b81ee24ce546534a4f84803ec7500fdd5b6abe79dd0023fbc21fca"),
    Artifact(_AWS, "utils", "2.54.13", "93d88484237e48203a81b3c6baea838e67dd5bb09834ee642549d17b66e32144"),
    Artifact(f"{_JACKSON}.core", "jackson-core", "3.2.2", "93d9090b8c505b2f942ad85dd5821e8c401bfbafafff11708a3fbe2ef9da18ca"),
    Artifact(f"{_JACKSON}.core", "jackson-databind", "3.2.2", "d27509f990d990fc779a01f3f612005ff6c67dc3bb0a720f5f4d9b2f5c713401"),
    Artifact(f"{_JACKSON}.dataformat", "jackson-dataformat-xml", "3.2.2", "627a1c904e866822c929fec9c4447068f78f3b94fa84d1fd1b47f6ce1e7dca4a"),
)  # fmt: skip
"""The jars that it loads when it serves a folder; those for other stores are left out."""


@dataclass(frozen=True)
class S3Server:
    """A running server, with one bucket."""

    endpoint: str
    folder: Path
    """Where its buckets lie: what is here arrived, whoever signed for it."""

    def settings(self, prefix: str = "", **more: Any) -> dict[str, Any]:
        """The `warehouse` settings of an installation whose warehouse is in the bucket."""
        return {
            "url": f"s3://{BUCKET}/{prefix}".rstrip("/"),
            "s3_endpoint": self.endpoint,
            "s3_region": REGION,
            "s3_access_key_id": KEY_ID,
            "s3_secret_access_key": SECRET,
            "s3_path_style": True,
            **more,
        }

    def installation(self, folder: Path, prefix: str = "", **more: Any) -> Settings:
        """Settings of an installation on the bucket."""
        return Settings(data_dir=folder, warehouse=self.settings(prefix, **more))

    def variables(self, prefix: str = "") -> dict[str, str]:
        """The same settings, as environment variables of `headgate up`."""
        return {f"HEADGATE_WAREHOUSE__{name.upper()}": str(value) for name, value in self.settings(prefix).items()}


@contextmanager
def server() -> Iterator[S3Server]:
    """The server, for as long as the tests run."""
    jars = _ensure(default_folder().parent / "s3proxy")
    with tempfile.TemporaryDirectory(prefix="headgate-s3-") as work:
        folder = Path(work, "buckets")
        Path(folder, BUCKET).mkdir(parents=True)
        endpoint = f"http://127.0.0.1:{_free_port()}"
        Path(work, "s3proxy.conf").write_text(
            "s3proxy.authorization=aws-v4\n"
            f"s3proxy.endpoint={endpoint}\n"
            f"s3proxy.identity={KEY_ID}\ns3proxy.credential={SECRET}\n"
            f"jclouds.provider=filesystem\njclouds.filesystem.basedir={folder}\n"
        )
        command = [java.java(), "-Xmx256m", "-cp", f"{jars}/*", "org.gaul.s3proxy.Main"]
        with Path(work, "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "--properties", f"{work}/s3proxy.conf"], stdout=log, stderr=log, env=_quiet()
            )
        try:
            _await(process, endpoint, Path(work, "log"))
            yield S3Server(endpoint, folder)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _quiet() -> dict[str, str]:
    return {**os.environ, "LOG_LEVEL": "warn"}


def _await(process: "subprocess.Popen[bytes]", endpoint: str, log: Path) -> None:
    port = int(endpoint.rpartition(":")[2])
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the S3 server does not answer: {log.read_text()}")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _ensure(folder: Path) -> Path:
    """The folder of the jars; what is missing is fetched, and each is checked."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [one for one in JARS if not (folder / one.file).exists()]
    if missing:
        _fetch(missing, folder)
    for one in JARS:
        found = hashlib.sha256((folder / one.file).read_bytes()).hexdigest()
        assert found == one.sha256, f"{folder / one.file} is not {one.coordinates} as pinned; delete it"
    return folder


def _fetch(artifacts: list[Artifact], folder: Path) -> None:
    """Have Ivy fetch these files alone; DEFAULT_ARTIFACT_REPOSITORY names a mirror, as with spark-submit."""
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
        wanted = "".join(
            f'<dependency org="{one.group}" name="{one.name}" rev="{one.version}" transitive="false" conf="*->default"/>'
            for one in artifacts
        )
        Path(work, "ivy.xml").write_text(
            f'<ivy-module version="2.0"><info organisation="headgate" module="tests"/>'
            f"<dependencies>{wanted}</dependencies></ivy-module>"
        )
        settings = []
        if mirror := os.environ.get("DEFAULT_ARTIFACT_REPOSITORY"):
            resolver = f'<ibiblio name="mirror" m2compatible="true" root="{mirror}"/>'
            Path(work, "settings.xml").write_text(
                f'<ivysettings><settings defaultResolver="mirror"/><resolvers>{resolver}</resolvers></ivysettings>'
            )
            settings = ["-settings", f"{work}/settings.xml"]
        command = [java.java(), "-Xmx256m", "-cp", f"{java.spark_jars()}/*", "org.apache.ivy.Main", *settings]
        options = ["-ivy", f"{work}/ivy.xml", "-cache", f"{work}/cache", "-types", "jar", "bundle", "-warn"]
        pattern = f"{work}/jars/[artifact]-[revision].[ext]"
        done = subprocess.run(
            [*command, *options, "-retrieve", pattern], capture_output=True, text=True, timeout=600, check=False
        )
        for one in artifacts:
            got = Path(work, "jars", one.file)
            assert got.is_file(), f"{one.coordinates} could not be fetched: {done.stdout[-2000:]}{done.stderr[-2000:]}"
            shutil.move(got, folder / one.file)
